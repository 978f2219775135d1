"""What speaks against draws of one's own model: new questions, other counts, no p of each."""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import comb, logit, xlog1py, xlogy

from bayesatk._tools.arrays import Array
from bayesatk.data.study import Study

_MAX_NOISE_SHARE = 0.03  # of an sd, from few new questions, without a note
_MIN_NEW_QUESTIONS = 100  # per draw, that the note recommends
_MIN_PVALUE = 1e-3  # of the counts of a system under p, without a note: near 1 of a right model
_RANDOM_ORDERS_SD = 1.6  # one random order in twenty fits better than that
_MISSING_SD = 3.0  # of the association with counts that p expects
_MAX_GAP_SD = 2.5  # between the mean of new questions and that of these
_CHECKED_DRAWS = 1000
_TINY = 1e-9  # least distance of p from 0 and 1, and least sd


def noise_note(study: Study, new: list[Array]) -> list[str]:
    """Say where so few new questions are drawn that their noise is in the sd.

    The mean of m of them has their variance over m beside that of what it estimates.
    """
    number, worst = new[0].shape[1], 0.0
    for metric in study.grid:
        for p in new:
            values = study.scale.judged(metric).latent(p)
            noise = values.var(axis=1).mean() / max(number - 1, 1)
            total_variance = values.mean(axis=1).var()
            if noise > 0.0 < total_variance:
                worst = max(worst, 1.0 - np.sqrt(max(1.0 - noise / total_variance, 0.0)))
    if worst <= _MAX_NOISE_SHARE and number > 1:
        return []
    wanted = max(int(np.ceil(number * worst / _MAX_NOISE_SHARE)), _MIN_NEW_QUESTIONS)
    finding = (
        "One new question a draw shows how single questions vary, not how far their mean is known"
        if number == 1
        else f"{number} new questions a draw are few: {100 * worst:.0f}% of the sd for questions "
        "like these is their noise, if they are drawn independently"
    )
    return [
        f"{finding}. Give p_new {wanted} of them or more, or the same evenly spread points in "
        "every draw (docs: My own PyMC model)."
    ]


def new_question_notes(study: Study, p: Array, new: list[Array]) -> list[str]:
    """Say where new questions of a system are none, or have another mean than those of the data.

    If p is right, the difference of the means is about zero: few of its sd over draws.
    """
    if study.scale.axes:
        return []
    most = int(study.outcomes.trials.max())
    notes = []
    for index, (name, values) in enumerate(zip(study.outcomes.systems, new, strict=True)):
        own = p[:, index]
        gap = values.mean(axis=1) - own.mean(axis=1)
        if np.array_equal(own, values):
            finding = (
                "is p itself: it has no new questions, and intervals are too narrow. Leave it out"
            )
        elif _are_counts(values * most):
            finding = (
                f"is made of outcomes, shares of {most} trials, in place of probabilities. Give p"
            )
        elif values.shape[1] > 1 and np.ptp(values, axis=1).max() < 1e-9 < own.std(axis=1).max():
            finding = (
                "is one number a draw, though questions differ in p. Give p of single questions"
            )
        elif abs(gap.mean()) > _MAX_GAP_SD * gap.std() + 1e-9:
            finding = (
                f"has the mean {values.mean():.3f}, and p of the questions of the data has "
                f"{own.mean():.3f}. Check the order of the systems in it, and that it is drawn "
                "with the parameters of each draw. Of another kind of questions nothing is wrong"
            )
        else:
            continue
        notes.append(f"{name}: p_new {finding}.")
    return notes


def count_shares_note(study: Study, p: Array) -> list[str]:
    """Say where p are shares of right trials, as of a posterior predictive distribution."""
    if study.scale.axes or not _are_counts(p * _counts(study)[1]):
        return []
    return [
        "p are shares of right trials, replicated counts over the number of trials, which vary "
        "more than success probabilities: give these."
    ]


def _are_counts(values: Array) -> bool:
    """Whether numbers that vary between draws are whole, to single precision."""
    whole = np.abs(values - np.round(values)).max() < 1e-5
    return bool(whole and np.ptp(values, axis=0).max() > 0.5)


def contradictions(study: Study, p: Array) -> list[str]:
    """Return notes where counts are improbable under p, or fit p of other questions or systems."""
    if study.scale.axes:
        return []
    right, trials = _counts(study)
    systems, draws = [str(system) for system in study.outcomes.systems], _thinned(p)
    findings = [
        f"{name}: counts are improbable if trials succeed with probability p (p-value below "
        f"{_MIN_PVALUE:g}): {finding}. Check that"
        for index, name in enumerate(systems)
        if (finding := _improbable(draws[:, index], right[index], trials[index]))
    ]
    findings += [
        f"{name}: p is unrelated to the counts of its questions, those of others fit as well. "
        "Check that p is drawn given the counts, by the likelihood or after it, and that"
        for index, name in enumerate(systems)
        if unrelated(draws[:, index], right[index], trials[index])
    ]
    others = _better_order(draws, right, trials)
    swapped = [name for index, name in enumerate(systems) if others[index] != index]
    if swapped:
        fitting = ", ".join(systems[other] for index, other in enumerate(others) if other != index)
        findings.append(
            f"{', '.join(swapped)}: their counts are less probable by a factor of more than "
            f"{1.0 / _MIN_PVALUE:,.0f} than if their p were those of {fitting}, in this order. "
            "Check that"
        )
    return [
        f"{finding} systems and questions of the trace have the labels and order of the data. If p "
        "is meant to differ from the trials, as of judges that err, nothing is wrong."
        for finding in findings
    ]


def _improbable(p: Array, right: Array, trials: Array) -> str:
    """Say how the number of right trials of a system is improbable under p, (draws, question).

    If n trials of each question succeed with probability p, the sum over questions of y - n p has
    expectation zero and variance sum n p (1 - p). Bernstein's inequality bounds the probability of
    a sum as large as that of the data. Twice the median of the p-values of all draws is a p-value
    (Rueger 1978), however they depend.
    """
    deviation = np.abs((right - trials * p).sum(axis=1))
    spread = (trials * p * (1.0 - p)).sum(axis=1) + deviation / 3.0
    exponent = 0.5 * deviation**2 / np.maximum(spread, np.finfo(float).tiny)
    if 4.0 * np.exp(-np.median(exponent)) >= _MIN_PVALUE:
        return ""
    expected = float(np.mean(p @ trials) / trials.sum())
    return f"{right.sum() / trials.sum():.3f} did, where p expects {expected:.3f}"


def unrelated(p: Array, right: Array, trials: Array) -> bool:
    r"""Whether the counts of a system go with p, (draws, question), of any other question as well.

    With p centred, :math:`w_j = p_j - \bar p`, the sum of :math:`w_j y_j` over questions has mean
    :math:`\sum w_j n_j p_j` and variance :math:`\sum w_j^2 n_j p_j (1 - p_j)` if p is right. In a
    random order of the questions that of their residuals r from the common rate has mean zero and
    variance :math:`\sum w_j^2 \sum r_j^2 / (Q - 1)` (Hoeffding 1951). It is unrelated where it is
    far below the first and not above the second, by the median of the draws. Of p that hardly
    differs between questions the two means are the same.
    """
    weight = p - p.mean(axis=1, keepdims=True)
    residual = right - trials * (right.sum() / trials.sum())
    random_sd = np.sqrt((weight**2).sum(axis=1) * (residual**2).sum() / max(right.size - 1, 1))
    expected_sd = np.sqrt((weight**2 * trials * p * (1.0 - p)).sum(axis=1))
    above_random = weight @ residual / np.maximum(random_sd, _TINY)
    missing = (weight * (trials * p - right)).sum(axis=1) / np.maximum(expected_sd, _TINY)
    return bool(np.median(above_random) < _RANDOM_ORDERS_SD and np.median(missing) > _MISSING_SD)


def _better_order(p: Array, right: Array, trials: Array) -> list[int]:
    """Return for each system that whose p its counts fit, if not all fit their own about as well.

    Of all assignments that with the largest sum of posterior mean log likelihoods, where this is
    larger than that of the systems as they are by more than `_MIN_PVALUE` is below one.
    """
    p = np.clip(p, _TINY, 1.0 - _TINY)
    success, failure = np.log(p).mean(axis=0), np.log1p(-p).mean(axis=0)
    log_likelihood = right @ success.T + (trials - right) @ failure.T  # [counts of, p of]
    own, order = np.arange(len(right)), linear_sum_assignment(log_likelihood, maximize=True)[1]
    gain = (log_likelihood[own, order] - log_likelihood[own, own]).sum()
    return (order if gain > -np.log(_MIN_PVALUE) else own).tolist()


def _counts(study: Study) -> tuple[Array, Array]:
    """Return successes and trials, (system, question)."""
    counts = study.outcomes.successes, study.outcomes.trials
    right, trials = (values.transpose("system", "question").values for values in counts)
    return right, trials


def _thinned(draws: Array) -> Array:
    """Return at most about a thousand of the draws, of all chains."""
    return draws[:: max(len(draws) // _CHECKED_DRAWS, 1)]


def is_given_p(logs: Array, p: Array, study: Study) -> bool:
    """Whether a log likelihood, (chain, draw, system, question), is binomial given p.

    Up to a constant of each question.
    """
    right, trials = _counts(study)
    given_p = xlogy(right, p) + xlog1py(trials - right, -p)
    difference = logs.reshape(given_p.shape) - given_p
    return np.allclose(difference, difference.mean(axis=0), rtol=1e-6, atol=1e-4)


def lacks_coefficients(logs: Array, study: Study) -> bool:
    r"""Whether a log likelihood, (chain, draw, system, question), is of marks in place of counts.

    It then lacks the logarithm of :math:`\binom{n}{y}`. Where all questions of n trials are alike,
    probabilities of the counts 0, ..., n sum to one: it lacks them if the sum is nearer to one with
    them than without. Nothing is said where not all of these counts occur, or where equal counts
    have different values, as with covariates.
    """
    right, trials = _counts(study)
    probability, lacking = np.exp(logs).mean(axis=(0, 1)), []
    for y, n, of_system in zip(right, trials, probability, strict=True):
        for size in np.unique(n[n > 1]):
            values = of_system[n == size]
            seen, first, which = np.unique(y[n == size], return_index=True, return_inverse=True)
            if seen.size == size + 1 and np.allclose(values, values[first][which], rtol=1e-6):
                coefficients = comb(size, seen)
                lacking.append(
                    abs(np.log(values[first] @ coefficients)) < abs(np.log(values[first].sum()))
                )
    return bool(lacking) and all(lacking)


def varies_by_question(p: Array) -> bool:
    """Whether p, (draws, system, question), is free to differ between questions.

    Of a regression without effects of questions p is a function of few parameters: its draws vary
    in few directions. With effects of questions they vary in as many as there are questions, so
    that half of the directions do not hold almost all of the variance.
    """
    logits = logit(np.clip(_thinned(p), 1e-9, 1.0 - 1e-9))
    logits -= logits.mean(axis=0)
    scale = logits.std(axis=0)
    logits /= np.where(scale > 1e-12, scale, 1.0)
    directions = np.linalg.svd(np.moveaxis(logits, 1, 0), compute_uv=False) ** 2
    share = np.cumsum(directions, axis=1)[:, (directions.shape[1] - 1) // 2]
    return bool((share < 0.999 * directions.sum(axis=1)).all())

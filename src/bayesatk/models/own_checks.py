"""What speaks against draws of one's own model: few new questions, other counts, no p of each."""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import logit, xlog1py, xlogy

from bayesatk._tools.arrays import Array
from bayesatk.data.study import Study

_MAX_NOISE_SHARE = 0.03  # of an sd, from few new questions, without a note
_MIN_NEW_QUESTIONS = 100  # per draw, that the note recommends
_MIN_PVALUE = 1e-6  # of the counts of a system under p, without a note
_CHECKED_DRAWS = 1000


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
            if noise > 0.0:
                worst = max(worst, 1.0 - np.sqrt(max(1.0 - noise / total_variance, 0.0)))
    if worst <= _MAX_NOISE_SHARE and number > 1:
        return []
    wanted = max(int(np.ceil(number * worst / _MAX_NOISE_SHARE)), _MIN_NEW_QUESTIONS)
    finding = (
        "One new question a draw shows how single questions vary, not how far their mean is known"
        if number == 1 else
        f"{number} new questions a draw are few: {100 * worst:.0f}% of the sd for questions like "
        "these is their noise, if they are drawn independently"
    )  # fmt: skip
    return [
        f"{finding}. Give p_new {wanted} of them or more, or the same evenly spread points in "
        "every draw (docs: My own PyMC model)."
    ]


def contradictions(study: Study, p: Array) -> list[str]:
    """Return notes where counts are all but impossible under p, or fit p of another system."""
    if study.scale.axes:
        return []
    right, trials = _counts(study)
    systems, draws = [str(system) for system in study.outcomes.systems], _thinned(p)
    findings = [
        f"{name}: counts are all but impossible if trials succeed with probability p (p-value "
        f"below {_MIN_PVALUE:g}): {finding}. Check that"
        for index, name in enumerate(systems)
        if (finding := _impossible(draws[:, index], right[index], trials[index]))
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


def _impossible(p: Array, right: Array, trials: Array) -> str:
    """Say how the counts of a system are all but impossible under p, (draws, question).

    If n trials of each question succeed with probability p, sums over questions of y - n p and of
    (p - mean p)(y - n p) have expectation zero and variances that are sums of weight^2 n p (1 - p).
    Bernstein's inequality bounds the probability of sums as large as those of the data. Twice the
    median of the p-values of all draws is a p-value (Rueger 1978), however they depend.
    """
    expected = p @ trials / trials.sum()
    residual, variance = right - trials * p, trials * p * (1.0 - p)
    p_values = []
    for weight in (1.0, p - expected[:, None]):
        deviation = np.abs((weight * residual).sum(axis=1))
        spread = (weight**2 * variance).sum(axis=1) + deviation / 3.0
        exponent = 0.5 * deviation**2 / np.maximum(spread, np.finfo(float).tiny)
        p_values.append(4.0 * np.exp(-np.median(exponent)))
    if p_values[0] < _MIN_PVALUE:
        rate = right.sum() / trials.sum()
        return f"{rate:.3f} did, where p expects {expected.mean():.3f}"
    return "others than p expects are hard" if p_values[1] < _MIN_PVALUE else ""


def _better_order(p: Array, right: Array, trials: Array) -> list[int]:
    """Return for each system that whose p its counts fit, if not all fit their own about as well.

    Of all assignments that with the largest sum of posterior mean log likelihoods, where this is
    larger than that of the systems as they are by more than `_MIN_PVALUE` is below one.
    """
    p = np.clip(p, 1e-9, 1.0 - 1e-9)
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

"""Notes on assumptions that matter for a result: difficulty families, pooling, weights, a proxy."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import bdtr, bdtrc

from bayesatk._tools.arrays import Array, Ints
from bayesatk.core.numerics.importance import K_HAT_MAX
from bayesatk.core.question.expected_credit import finite
from bayesatk.core.question.permutation import correlation_test
from bayesatk.judge_error import JudgeError
from bayesatk.metrics.credit import maj_at
from bayesatk.metrics.grid import Metric, MetricGrid
from bayesatk.posterior.posterior import FamilyShare, Posterior
from bayesatk.priors import Pooling


def proxy_note(
    system: object,
    successes: Ints,
    trials: Ints,
    plurality: Mapping[int, float],
) -> list[str]:
    """Say how far the strict majority of right marks is from the vote between answers."""
    parts = []
    for k, voted in plurality.items():
        proxy = float(finite(maj_at(k), successes, trials).mean())
        if np.isfinite(proxy) and np.isfinite(voted):
            parts.append(f"{proxy - voted:+.4f} at k={k} ({proxy:.4f} for {voted:.4f})")
    if not parts:
        return []
    return [
        f"{system}: the strict majority of right marks, maj@k, differs from plurality@k by "
        f"{', '.join(parts)}, in finite estimates."
    ]


def partly_observed_notes(
    systems: Sequence[object], requested: Sequence[Metric], estimates: Array, trials: Ints
) -> list[str]:
    """Say how many questions estimates are of, where not all that were tried have k trials.

    Parameters
    ----------
    systems : sequence
    requested : sequence of Metric
    estimates : ndarray, shape (system, metric)
    trials : ndarray of int, shape (system, question)

    Examples
    --------
    >>> from bayesatk.metrics.grid import parse
    >>> trials, estimates = np.array([[5, 5, 5, 3], [4, 4, 3, 3]]), np.array([[0.5], [0.4]])
    >>> (note,) = partly_observed_notes(["a", "b"], parse("pass@4"), estimates, trials)
    >>> note.removeprefix("The estimate of pass@4 is of the questions with 4 trials or more: ")
    '2 of 4 (b) to 3 of 4 (a).'
    """
    notes, tried = [], (trials > 0).sum(axis=1)
    for metric, values in zip(requested, estimates.T, strict=True):
        observed = (trials >= metric.k).sum(axis=1)
        # An estimate without k trials of any question is known: all scores are equal.
        stated = np.isfinite(values) & (observed > 0)
        if not (stated & (observed < tried)).any():
            continue
        order = sorted(np.flatnonzero(stated).tolist(), key=lambda i: observed[i] / tried[i])
        (least, first), (most, last) = (
            (f"{observed[i]} of {tried[i]}", systems[i]) for i in (order[0], order[-1])
        )
        shares = least if least == most else f"{least} ({first}) to {most} ({last})"
        notes.append(
            f"The estimate of {metric.label} is of the questions with {metric.k} trials or more: "
            f"{shares}."
        )
    return notes


def single_trials_note(system: object, requested: Sequence[Metric], trials: Ints) -> list[str]:
    """Say that best and worst of k scores rest on the prior where questions have one trial each.

    Examples
    --------
    >>> from bayesatk.metrics.grid import parse
    >>> single_trials_note("base", parse("bayes max@4"), np.array([1, 1]))[0][:66]
    'base: one trial of each question does not say how its scores vary,'
    """
    labels = [metric.label for metric in requested if not metric.voted and metric.k > 1]
    if not labels or trials.max(initial=0) > 1:
        return []
    return [
        f"{system}: one trial of each question does not say how its scores vary, so "
        f"{', '.join(labels)} and their intervals rest on the prior. Run a second trial."
    ]


def these_questions_note(system: object, trials: Ints) -> list[str]:
    """Say that partial pooling of single trials knows these questions too well, or not enough.

    Intervals on these questions held .84 (nearly equal questions) to .96 (very unequal ones) of
    simulated means of 40 to 200 questions, and those on questions like these .94 to .98.

    Examples
    --------
    >>> these_questions_note("base", np.array([1, 1]))[0][:70]
    'base: one trial of each question does not say how much of their spread'
    """
    if trials.max(initial=0) > 1:
        return []
    return [
        f"{system}: one trial of each question does not say how much of their spread is chance, so "
        "intervals on these questions rest on the prior: they held .84 to .96 of simulated truths, "
        "those on questions like these .94 to .98, by which orders on both are decided. A second "
        "trial mends this."
    ]


def one_question_note(system: object, trials: Ints) -> list[str]:
    """Say that one question tells nothing of others.

    Examples
    --------
    >>> one_question_note("base", np.array([5, 0]))[0]
    'base: one question does not say how questions differ, so scores on others rest on the prior.'
    """
    if (trials > 0).sum() > 1:
        return []
    return [
        f"{system}: one question does not say how questions differ, so scores on others rest on "
        "the prior."
    ]


def weight_note(
    system: object,
    pooling: Pooling,
    counts: Ints,
    scores: Sequence[float],
    weight: Array | None,
    by_law: bool,
) -> list[str]:
    """Say that weights are correlated with success where pooling assumes that they are not.

    The p-value is that of a permutation of the weights over the questions.

    Parameters
    ----------
    system : label
    pooling : Pooling
    counts : ndarray of int, shape (questions, categories)
    scores : sequence of float
        Of the categories.
    weight : ndarray, shape (questions,), optional
    by_law : bool
        Whether questions like these follow the law of difficulty.
    """
    tried = counts.sum(axis=1) > 0
    if weight is None or pooling == "none" or tried.sum() < 3:
        return []
    rate = counts[tried] @ np.array(scores) / counts[tried].sum(axis=1)
    scaled_weight = weight[tried] / weight[tried].max()
    correlation, p_value = correlation_test(scaled_weight, rate)
    if p_value >= _CORRELATION_P_VALUE:
        return []
    how = "higher" if correlation > 0.0 else "lower"
    return [
        f"{system}: questions with larger weights have {how} scores (mean score "
        f"{np.average(rate, weights=scaled_weight):.3f} with weights, {rate.mean():.3f} without; "
        f"p = {p_value:.2g}). {_POOLING_ASSUMPTIONS[pooling]}"
        f"{_LAW_HAS_NO_WEIGHTS * (pooling == 'partial' and by_law)}"
    ]


_MAX_RATE_SHIFT = 1.5  # by marks, in sds of the calibration, without a note
_CONFLICT_P_VALUE = 0.01  # below it marks contradict the calibration set
_LAW_HAS_NO_WEIGHTS = (
    " The law of questions like these has no weights: population='bootstrap' draws these questions "
    "anew with their weights, whatever their relation to difficulty."
)
_POOLING_ASSUMPTIONS = {
    "partial": "Partial pooling assumes that weights and difficulty are independent. It shrinks "
    "weighted means towards unweighted ones, more so with few trials of every question. Evaluate "
    "with covariates=['weight'].",
    "complete": "Complete pooling gives all questions one success probability, whatever their "
    "weights. Use pooling='partial'.",
}
_REASONS_OUTSIDE = {
    "none": "an independent prior shifts every question in the same direction, so with few trials "
    "and many questions its bias is larger than the sd. Use the estimate, or pooling='partial'",
    "partial": "the law of difficulty draws questions towards each other; "
    "bayesatk.checks.criticise says whether it fits these",
    "complete": "the questions differ in success probability. Use pooling='partial'",
}


def outside_note(
    pooling: Pooling,
    system: object,
    requested: Sequence[Metric],
    grid: MetricGrid,
    estimate: Array,
    statistics: Array,
    trials: Ints,
) -> list[str]:
    """Say so when the unbiased estimate lies outside the interval for these questions.

    Returns
    -------
    list of str
        One sentence, for the requested metric furthest outside (in sds); otherwise nothing.
    """
    position = {metric: i for i, metric in enumerate(grid)}
    index = [position[metric] for metric in requested]
    all_observed = np.array([(trials[trials > 0] >= metric.k).all() for metric in requested])
    value, on_these_questions = (
        np.where(all_observed, estimate[index], np.nan),
        statistics[index, 0],
    )
    sd, low, high = on_these_questions[:, 2], on_these_questions[:, 3], on_these_questions[:, 4]
    with np.errstate(invalid="ignore"):
        beyond = np.maximum(low - value, value - high) / np.maximum(sd, 1e-300)
    has_estimate = np.isfinite(beyond)
    if not (has_estimate & (beyond > 1e-6)).any():
        return []
    worst = int(np.argmax(np.where(has_estimate, beyond, -np.inf)))
    return [
        f"{system}: the unbiased estimate of {requested[worst].label}, {value[worst]:.3f}, lies "
        f"outside its interval for these questions, {low[worst]:.3f} to {high[worst]:.3f}: "
        f"{_REASONS_OUTSIDE[pooling]}."
    ]


FAMILY_WORDS = {"beta": "Beta", "inflated": "inflated", "mixture": "mixture of two Betas"}
_CORRELATION_P_VALUE = 0.01  # below it weights and success are correlated
_MIN_SHOWN_PROBABILITY = 0.05  # of a difficulty family that is named


def family_shares(probability: Mapping[str, float], least: float = _MIN_SHOWN_PROBABILITY) -> str:
    """Name difficulty families with their probabilities, the most probable first.

    Examples
    --------
    >>> family_shares({"beta": 0.67, "inflated": 0.05, "mixture": 0.28})
    'Beta 67%, mixture of two Betas 28%, inflated 5%'
    """
    order = sorted(probability, key=lambda name: -probability[name])
    return ", ".join(
        f"{FAMILY_WORDS[name]} {100 * probability[name]:.0f}%"
        for name in order
        if probability[name] >= least
    )


def family_note(
    system: object,
    families: Mapping[str, FamilyShare],
    requested: Sequence[Metric],
    fewest: int,
) -> list[str]:
    """Name the difficulty families that are averaged, where that matters.

    It does if more than one is probable, or if a metric judges more trials than were run.

    Parameters
    ----------
    system : label
    families : mapping {family: FamilyShare}
    requested : sequence of Metric
    fewest : int
        Trials of the question with the fewest.

    Returns
    -------
    list of str
    """
    shown = {
        name: family.probability
        for name, family in families.items()
        if family.probability >= _MIN_SHOWN_PROBABILITY
    }
    beyond = [metric.label for metric in requested if metric.k > fewest]
    notes = []
    if len(shown) > 1 or (beyond and len(families) > 1):
        notes.append(
            f"{system}: difficulty is averaged over shapes that are as probable as: "
            f"{family_shares(shown)}."
        )
        if beyond:
            notes.append(
                f"{system}: difficulty families matter for the interval of {beyond[-1]}, which "
                "judges more trials than some questions have."
            )
    rough = [name for name in shown if families[name].pareto_k >= K_HAT_MAX]
    if rough:
        worst = max(rough, key=lambda name: families[name].pareto_k)
        notes.append(
            f"{system}: importance weights of the {FAMILY_WORDS[worst]} family have Pareto k "
            f"{families[worst].pareto_k:.2f}, above {K_HAT_MAX}: errors may be larger than "
            "ci_error states. bayesatk.sample draws from the same model by NUTS."
        )
    return notes


def judge_notes(
    system: object,
    error: JudgeError,
    rates: tuple[Array, Array],
    metric: Metric,
    posterior: Posterior,
    place: int,
) -> list[str]:
    """Say what the judge costs, and whether its calibration set fits the marks.

    Parameters
    ----------
    system : label
    error : JudgeError
    rates : (ndarray, ndarray)
        Probabilities of points, and sensitivity and false positive rate there.
    metric : Metric
        The first requested metric.
    posterior : Posterior
    place : int
        Position of the metric.
    """
    share = 0.0 if posterior.judge_share is None else float(posterior.judge_share[place, 0])
    weight, values = rates
    notes = [
        f"{system}: corrected for the judge ({error}). {100 * share:.0f}% of the "
        f"variance of {metric.label} on these questions is due to error rates; the estimate is of "
        "the marks as they are."
    ]
    for name, column, marked, size, kind in (
        ("sensitivity", 0, error.tp, error.p, "right"),
        ("false positive rate", 1, error.fp, error.n, "wrong"),
    ):
        mean = float(weight @ values[:, column])
        chance = calibration_p_value(weight, values[:, column], marked, size)
        if chance < _CONFLICT_P_VALUE:
            notes.append(
                f"{system}: the marks contradict the calibration of the judge's {name}: with all "
                f"marks it is {mean:.3f}, and a calibration set as far from that as {marked} of "
                f"{size} {kind} trials has a probability of {chance:.2g}. The judge may do "
                "otherwise on these trials than on the calibration set, or the difficulties have "
                "another shape."
            )
        elif (
            moved(weight, values[:, column], getattr(error, name.replace(" ", "_")))
            > _MAX_RATE_SHIFT
        ):
            notes.append(
                f"{system}: the marks move the judge's {name} from {marked} of {size} to "
                f"{mean:.3f}, by the shape of difficulties that the model assumes. Trials of known "
                "truth among these (truth=) would tell."
            )
    return notes


def moved(weight: Array, values: Array, shape: tuple[float, float]) -> float:
    """How far marks have moved the mean of a rate, in sds of the calibration."""
    a, b = shape
    sd = np.sqrt(a * b / (a + b + 1.0)) / (a + b)
    return float(abs(weight @ values - a / (a + b)) / sd)


def calibration_p_value(weight: Array, values: Array, marked: int, size: int) -> float:
    """Posterior predictive probability of a calibration count as far out as that observed.

    Examples
    --------
    >>> round(calibration_p_value(np.ones(1), np.array([0.5]), 5, 5), 4)  # twice 1/32
    0.0625
    """
    below = float(weight @ bdtr(marked, size, values))
    above = float(weight @ bdtrc(marked - 1, size, values)) if marked else 1.0
    return min(1.0, 2.0 * min(below, above))

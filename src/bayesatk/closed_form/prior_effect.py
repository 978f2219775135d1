"""How much of an answer is prior: beyond the observed trials, and through the kind of pooling."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayesatk.closed_form.posteriors import system_posterior
from bayesatk.core.distribution import interval
from bayesatk.core.mixture import States
from bayesatk.core.moments import posterior_moments
from bayesatk.core.priors import Pooling, Prior, power_scaled
from bayesatk.metrics import Metric, MetricGrid

_POWER = 0.5


def prior_sensitivity(
    statistics: NDArray[np.float64],
    pooling: Pooling,
    states: States,
    metrics: Sequence[Metric],
    prior: Prior,
    ci_prob: float,
    ci_kind: str,
) -> NDArray[np.float64]:
    """Width of the interval under a weaker prior, relative to its width; (metrics, target).

    Given where k exceeds the trials of some question, NaN elsewhere. Where only draws give an
    interval, sds are compared: they are exact.
    """
    ratio = np.full(statistics.shape[:2], np.nan)
    beyond = [i for i, one in enumerate(metrics) if one.k > states.trials.min()]
    if not beyond:
        return ratio
    weaker = system_posterior(
        pooling, states, [metrics[i] for i in beyond], power_scaled(prior, _POWER)
    )
    for target, exact in enumerate(weaker.distributions()):
        for row, i in enumerate(beyond):
            _, _, sd, low, high = statistics[i, target, :5]
            own, other = sd, weaker.sd[row, target]
            if exact is not None:
                ends = interval(exact[row], ci_prob, ci_kind)
                own, other = high - low, ends[1] - ends[0]
            ratio[i, target] = other / own if own > 0 else 1.0
    return ratio


def pooling_note(
    pooling: Pooling,
    system: object,
    states: States,
    requested: Sequence[Metric],
    grid: MetricGrid,
    statistics: NDArray[np.float64],
) -> list[str]:
    """Say so when independent flat priors would have given a different answer.

    Returns
    -------
    list of str
        One sentence, for the requested metric with the largest difference, when that exceeds both
        sds; otherwise nothing.
    """
    if pooling != "partial":
        return []
    c, n, share = states.successes, states.trials, states.count / states.questions
    moments = posterior_moments([one.credit for one in requested], c + 1.0, n - c + 1.0)
    flat = share @ moments.mean
    flat_sd = np.sqrt(share @ moments.variance / states.questions)
    position = {one: i for i, one in enumerate(grid)}
    own = statistics[[position[one] for one in requested], 0]
    mean, sd = own[:, 1], own[:, 2]
    excess = np.abs(flat - mean) / np.maximum(np.maximum(sd, flat_sd), 1e-300)
    worst = int(np.argmax(excess))
    if excess[worst] <= 1.0:
        return []
    return [
        f"{system}: an independent flat prior per question would put {requested[worst].label} of "
        f"these questions at {flat[worst]:.3f} ± {flat_sd[worst]:.3f}, {excess[worst]:.1f} sds "
        f"from the pooled {mean[worst]:.3f} ± {sd[worst]:.3f}: with few trials and many questions "
        "its bias outgrows its sd."
    ]

"""What a result says of its judge: its calibration, what it costs, whether marks fit it."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from scipy.special import bdtr, bdtrc

from bayesatk._tools.arrays import Array
from bayesatk.judge_error import JudgeError
from bayesatk.metrics.grid import Metric, MetricGrid
from bayesatk.posterior.assembly import Coords
from bayesatk.posterior.posterior import SystemPosterior
from bayesatk.results.schema import GROUPED_TARGETS, metric_dataset

_MOVED = 1.5  # sds of the calibration by which marks move a rate before it is said
_CONFLICT = 0.01  # posterior predictive probability of a calibration set at which it is doubted


def judge_groups(
    judges: Sequence[JudgeError] | None, posteriors: Sequence[SystemPosterior], grid: MetricGrid,
    coords: Coords,
) -> dict[str, xr.Dataset]:  # fmt: skip
    """Return the group ``judge``, where judges err.

    Metric variables hold the share of the variance that is due to the rates; ``tp``, ``p``,
    ``fp`` and ``n`` the calibration sets, by system.
    """
    if judges is None:
        return {}
    shares = [one.judge_share for one in posteriors]
    values = np.stack([one for one in shares if one is not None])
    full = {"system": coords["system"], "target": list(GROUPED_TARGETS[: values.shape[2]])}
    group = metric_dataset(grid, values[:, : len(grid)], ("system",), ("target",), full)
    names = ("tp", "p", "fp", "n")
    sizes = {name: ("system", np.array([getattr(one, name) for one in judges])) for name in names}
    return {"judge": group.assign(sizes)}


def judge_notes(
    system: object,
    error: JudgeError,
    rates: tuple[Array, Array],
    metric: Metric,
    posterior: SystemPosterior,
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
        The first that was asked for.
    posterior : SystemPosterior
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
        chance = two_sided(weight, values[:, column], marked, size)
        if chance < _CONFLICT:
            notes.append(
                f"{system}: the marks contradict the calibration of the judge's {name}: with all "
                f"marks it is {mean:.3f}, and a calibration set as far from that as {marked} of "
                f"{size} {kind} trials has a probability of {chance:.2g}. The judge may do "
                "otherwise on these trials than on the calibration set, or the difficulties have "
                "another shape."
            )
        elif moved(weight, values[:, column], getattr(error, name.replace(" ", "_"))) > _MOVED:
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


def two_sided(weight: Array, values: Array, marked: int, size: int) -> float:
    """Posterior predictive probability of a calibration count as far out as that observed.

    Examples
    --------
    >>> round(two_sided(np.ones(1), np.array([0.5]), 5, 5), 4)  # twice 1/32
    0.0625
    """
    below = float(weight @ bdtr(marked, size, values))
    above = float(weight @ bdtrc(marked - 1, size, values)) if marked else 1.0
    return min(1.0, 2.0 * min(below, above))

"""What `evaluate` was asked, as its systems are analysed by it."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from bayesatk.data.asked import Asked, read_asked
from bayesatk.metrics.grid import MetricGrid, MetricSpec
from bayesatk.posterior.assembly import CHAINS


@dataclass(frozen=True)
class Request(Asked):
    """What is asked of every system.

    Parameters
    ----------
    grid : MetricGrid
        Of the requested metrics.
    ci_prob, ci_kind
        Of credible intervals.
    draws : int
        In all.
    """

    grid: MetricGrid
    ci_prob: float
    ci_kind: str
    draws: int


def read_request(
    data: object, metrics: MetricSpec, *, ci_prob: float, ci_kind: str, draws: int, **options: Any
) -> Request:
    """Return what is asked of every system; parameters of `evaluate`."""
    if ci_kind not in ("eti", "hdi"):
        raise ValueError(f"ci_kind must be 'eti' or 'hdi'; got {ci_kind!r}.")
    if not isinstance(draws, int | np.integer) or draws < 2:
        raise ValueError(f"draws must be an integer >= 2 (per chain); got {draws!r}.")
    asked = read_asked(data, metrics, ci_prob=ci_prob, **options)
    known = {each.name: getattr(asked, each.name) for each in fields(asked)}
    return Request(
        **known, grid=MetricGrid.of(asked.requested), ci_prob=ci_prob, ci_kind=ci_kind,
        draws=CHAINS * draws,
    )  # fmt: skip

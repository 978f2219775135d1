"""What `evaluate` was asked, as its systems are analysed by it."""

from dataclasses import dataclass, fields
from typing import Any

from bayesatk._tools.arguments import one_of, whole_number
from bayesatk.data.inputs import Inputs, read_inputs
from bayesatk.metrics.grid import MetricGrid, MetricSpec
from bayesatk.results.schema import CHAINS


@dataclass(frozen=True, kw_only=True)
class Request(Inputs):
    """What is asked of every system.

    Parameters
    ----------
    grid : MetricGrid
        Of the requested metrics.
    ci_prob, ci_kind
        Of credible intervals.
    draws : int
        In all.
    judge_seed : int
        Of the order in which rates of judges are drawn, the same for all systems.
    """

    grid: MetricGrid
    ci_prob: float
    ci_kind: str
    draws: int
    judge_seed: int = 0

    @property
    def bootstrapped(self) -> bool:
        """Whether the population is that of the Bayesian bootstrap over the questions."""
        weighted = self.outcomes.weight is not None and self.design is None
        return self.pooling == "none" or (self.pooling == "partial" and weighted)


def read_request(
    data: object, metrics: MetricSpec, *, ci_prob: float, ci_kind: str, draws: int, **options: Any
) -> Request:
    """Return what is asked of every system; parameters of `evaluate`."""
    one_of("ci_kind", ci_kind, ("eti", "hdi"))
    draws = whole_number("draws", draws, 2)
    asked = read_inputs(data, metrics, ci_prob=ci_prob, **options)
    known = {each.name: getattr(asked, each.name) for each in fields(asked)}
    return Request(
        **known, grid=MetricGrid.of(asked.requested), ci_prob=ci_prob, ci_kind=ci_kind,
        draws=CHAINS * draws,
    )  # fmt: skip

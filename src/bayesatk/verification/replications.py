"""One replication of simulation-based calibration: truth, data, posterior draws, places."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from bayesatk._tools.batches import misshapen
from bayesatk.core.costs.prior import CostPrior
from bayesatk.data.scales import RIGHT_WRONG, Scored
from bayesatk.judge_error import JudgeError
from bayesatk.metrics.grid import parse
from bayesatk.priors import AnswerPrior, CrossedPrior, Pooling
from bayesatk.priors.choice import prior_from
from bayesatk.verification.answer_simulator import AnswerSimulator
from bayesatk.verification.cost_simulator import CostSimulator
from bayesatk.verification.count_simulator import CountSimulator
from bayesatk.verification.grouped_simulator import GroupedSimulator
from bayesatk.verification.normal_simulators import CrossedSimulator, LogitNormalSimulator
from bayesatk.verification.regression_simulator import RegressionSimulator
from bayesatk.verification.simulators import Array, PyMCForm, Simulator

Engine = Literal["closed_form", "pymc"]
Structure = Literal["covariates", "groups"]
BATCH = 50


@dataclass(frozen=True)
class Study:
    """Everything that a replication depends on, bar its number."""

    questions: int
    trials: int
    metrics: str
    pooling: Pooling
    prior: dict[str, Any]
    engine: Engine
    seed: int
    form: PyMCForm | None = None
    scores: tuple[float, ...] | None = None
    judge: dict[str, Any] | None = None
    cost: dict[str, Any] | None = None
    structure: Structure | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """All of it, as a file of results holds it, but for later options that are not used."""
        later = ("judge", "cost", "structure")
        return {name: own for name, own in asdict(self).items() if own or name not in later}

    def rng(self, replication: int) -> np.random.Generator:
        """Return the randomness of one replication, whatever the others do."""
        return np.random.default_rng([self.seed, replication])

    def simulator(self) -> Simulator:
        """Return the model that is drawn from and fitted."""
        prior, metrics = prior_from(self.prior), parse(self.metrics)
        size = self.questions, self.trials, metrics
        if self.cost is not None:
            return CostSimulator(*size, prior, replace(CostPrior(**self.cost), scale=1.0))
        if isinstance(prior, AnswerPrior):
            return AnswerSimulator(*size, prior)
        if self.structure == "covariates":
            return RegressionSimulator(*size, prior)
        if self.structure == "groups":
            return GroupedSimulator(*size, prior)
        if self.form == "logit_normal":
            return LogitNormalSimulator(*size, prior)
        if isinstance(prior, CrossedPrior):
            return CrossedSimulator(*size, prior)
        scale = RIGHT_WRONG if self.scores is None else Scored(self.scores)
        judge = None if self.judge is None else JudgeError(**self.judge)
        return CountSimulator(*size, scale, self.pooling, prior, self.form, judge)


def run_batch(study: Study, start: int) -> dict[str, list[float]]:
    """Places of the truth for one batch of replications."""
    rows = [_replicate(study, start + i) for i in range(BATCH)]
    return {name: [row[name] for row in rows] for name in rows[0]}


def quantities(study: Study) -> list[str]:
    """Return the names of the places that every replication has."""
    return sorted(study.simulator().simulate(study.rng(0))[0])


def batch_fault(names: list[str], values: Any) -> str:
    """Say what is wrong with a batch that was read from a file; "" if nothing is."""
    if not isinstance(values, dict) or sorted(values) != names:
        got = list(values) if isinstance(values, dict) else values
        return f"{got!r:.80} where {', '.join(names)} must be"
    for own in values.values():
        if wrong := misshapen(own, BATCH):
            return wrong
        outside = [one for one in own if not 0.0 <= one <= 1.0]
        if outside:
            return f"{outside[0]} where a probability must be"
    return ""


def _replicate(study: Study, replication: int) -> dict[str, float]:
    rng, simulator = study.rng(replication), study.simulator()
    truth, data = simulator.simulate(rng)
    draws = simulator.sampled(data, rng) if study.engine == "pymc" else simulator.exact(data, rng)
    return {name: _place(value, draws[name], rng) for name, value in truth.items()}


def _place(value: float, draws: Array, rng: np.random.Generator) -> float:
    """Rank of the truth among the draws, ties and the gap it falls in broken at random."""
    below, same = int((draws < value).sum()), int((draws == value).sum())
    rank = below + rng.integers(0, same + 1)
    return float((rank + rng.random()) / (len(draws) + 1))

"""One replication of simulation-based calibration: truth, data, posterior draws, places."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bayesatk.core.priors import CrossedPrior, Pooling, prior_from
from bayesatk.metrics import parse
from bayesatk.verification.worlds import (
    Array,
    CategoryWorld,
    CrossedWorld,
    PyMCForm,
    SuccessWorld,
    World,
)

Engine = Literal["closed_form", "pymc"]
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

    def rng(self, replication: int) -> np.random.Generator:
        """Return the randomness of one replication, whatever the others do."""
        return np.random.default_rng([self.seed, replication])

    def world(self) -> World:
        """Return the model that is drawn from and fitted."""
        prior, metrics = prior_from(self.prior), parse(self.metrics)
        if isinstance(prior, CrossedPrior):
            return CrossedWorld(self.questions, self.trials, metrics, prior)
        size = (self.questions, self.trials, metrics, self.pooling, prior, self.form)
        return SuccessWorld(*size) if self.scores is None else CategoryWorld(*size, self.scores)


def run_batch(study: Study, start: int) -> dict[str, list[float]]:
    """Places of the truth for one batch of replications."""
    rows = [_replicate(study, start + i) for i in range(BATCH)]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _replicate(study: Study, replication: int) -> dict[str, float]:
    rng, world = study.rng(replication), study.world()
    truth, data = world.simulate(rng)
    draws = world.sampled(data, rng) if study.engine == "pymc" else world.exact(data, rng)
    return {name: _place(value, draws[name], rng) for name, value in truth.items()}


def _place(value: float, draws: Array, rng: np.random.Generator) -> float:
    """Rank of the truth among the draws, ties and the gap it falls in broken at random."""
    below, same = int((draws < value).sum()), int((draws == value).sum())
    rank = below + rng.integers(0, same + 1)
    return float((rank + rng.random()) / (len(draws) + 1))

"""Questions of one system in groups, or with covariates, drawn from the declared prior."""

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from bayesatk.data.study import Study
from bayesatk.data.tally import tally
from bayesatk.metrics.grid import MetricGrid
from bayesatk.models.metric_draws import Shares, SystemMetrics
from bayesatk.models.parts import count_part, of_structure
from bayesatk.models.program import Questions, build_program
from bayesatk.models.question_draws import RightWrongLaw, SystemDraws, prior_draws
from bayesatk.models.traces import traced_difficulty
from bayesatk.posterior.models_of import Declared
from bayesatk.priors import HyperPrior
from bayesatk.results.question_laws import declared_fields
from bayesatk.verification.simulators import (
    DRAWS,
    Array,
    Metrics,
    Quantities,
    by_target,
    of_part,
    thinned_draws,
)

_GROUP = 4  # questions


@dataclass(frozen=True)
class StructuredSimulator:
    """The same number of trials of every question.

    Questions are in groups of four; or their success depends on a trend and on a kind, of which
    every third one is.
    """

    questions: int
    trials: int
    metrics: Metrics
    prior: HyperPrior
    structure: Literal["covariates", "groups"]

    def declared(self, counts: Array) -> Study:
        """Return counts (questions, wrong and right) as they are evaluated."""
        number = np.arange(self.questions)
        columns: dict[str, Any] = {"group": (number // _GROUP).tolist()}
        if self.structure == "covariates":
            third = (number % 3 == 0).astype(float)
            columns = {
                "covariates": {"trend": number.astype(float).tolist(), "third": third.tolist()}
            }
        outcomes = tally((counts[:, 1], counts.sum(axis=1)), **columns)
        asked: dict[str, Any] = {"group_weights": "questions"}
        if self.structure == "covariates":
            asked = {"covariates": ("trend", "third")}
        return Study(
            outcomes=outcomes, metrics=tuple(self.metrics), pooling="partial", prior=self.prior,
            **asked,
        )  # fmt: skip

    def simulate(self, rng: np.random.Generator) -> tuple[dict[str, float], Any]:
        """Draw hyperparameters, effects of groups, success probabilities and counts."""
        study = self.declared(np.tile([1, 0], (self.questions, 1)))
        law = prior_draws(declared_fields(study, "beta"), study, 1, rng)
        asked = Questions.of(study, distinct=False)
        p = np.concatenate(
            [
                law.law_of(int(group), row).given(np.zeros(2), 1, rng)
                for group, row in zip(asked.group, asked.rows, strict=True)
            ],
            axis=1,
        )
        shares = Shares.of(self.questions, grouping=study.grouping)
        drawn = SystemMetrics(self.metrics, shares, asked, law, p).draw(False, rng)
        truth = self._named(study, law, p) | by_target(self.metrics, drawn.whole)
        right = rng.binomial(self.trials, p[0])
        counts = np.stack([self.trials - right, right], axis=1)
        return {name: float(value[0]) for name, value in truth.items()}, counts

    def exact(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw from the closed form."""
        study = self.declared(data)
        drawn = Declared.of_study(study).model(0).fit(self.metrics).draw(DRAWS, rng, True)
        assert drawn.p is not None
        variables = dict(drawn.hyper) | {"p": drawn.p}
        if drawn.groups is not None:
            variables["group_mean"] = drawn.groups.mean
        return self._flat(study, variables) | by_target(self.metrics, drawn.metrics)

    def sampled(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw with NUTS."""
        study = self.declared(data)
        values = Questions.of(study, distinct=False).exchanged
        posterior = thinned_draws(_program(self), values, rng)
        difficulty = traced_difficulty(posterior, 0)
        assert difficulty is not None
        part = count_part(study, MetricGrid.of(self.metrics), posterior, True, rng, [difficulty])
        variables, metrics = of_part(part, self.metrics)
        return self._flat(study, variables | {"icc": difficulty.icc[:, 0]}) | metrics

    def _named(self, study: Study, law: SystemDraws, p: Array) -> Quantities:
        assert isinstance(law.law, RightWrongLaw)
        variables = {name: values for name, (_, values) in of_structure(study, law).items()}
        variables["icc"] = law.law.difficulty.overall[1]
        if law.group_sd is not None:
            variables["group_sd"] = law.group_sd
        return self._flat(study, variables | {"p": p})

    def _flat(self, study: Study, variables: Quantities) -> Quantities:
        """Name quantities: every coefficient, and of groups and questions the first."""
        named: Quantities = {name: variables[name] for name in ("typical_p", "group_sd", "icc")
                             if name in variables}  # fmt: skip
        if study.design is not None:
            columns = variables["coefficients"].T
            named |= dict(zip(study.design.coefficients, columns, strict=True))
        else:
            named["group_mean_first"] = variables["group_mean"][:, 0]
        return named | {"p_first": variables["p"][:, 0]}


@cache
def _program(simulator: StructuredSimulator) -> Any:
    import nutpie

    study = simulator.declared(np.tile([1, 0], (simulator.questions, 1)))
    return nutpie.compile_pymc_model(build_program(study, "beta", distinct=False))

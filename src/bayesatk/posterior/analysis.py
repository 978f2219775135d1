"""The closed-form analysis of one system, whatever its metrics judge."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.core.categorical import category_finite
from bayesatk.core.dirichlet import DirichletHyper
from bayesatk.core.laws import finite
from bayesatk.core.states import States
from bayesatk.data.asked import Asked
from bayesatk.data.outcomes import Outcomes
from bayesatk.metrics.category_credit import CategoryCredit, reachable
from bayesatk.metrics.grid import MetricGrid
from bayesatk.posterior.answers import answer_posterior, finite_estimates
from bayesatk.posterior.categories import category_posterior, sampled_hyper
from bayesatk.posterior.category_states import CategoryStates, Judged
from bayesatk.posterior.posterior import Distributions, Draws, SystemPosterior
from bayesatk.posterior.posteriors import system_posterior
from bayesatk.posterior.prior_effect import (
    category_sensitivity,
    family_note,
    outside_note,
    prior_sensitivity,
    proxy_note,
)
from bayesatk.priors import (
    CategoryPrior,
    DirichletHyperPrior,
    Prior,
)


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

    @property
    def judged(self) -> list[int]:
        """Positions in the grid of the metrics that judge successes or categories."""
        return [i for i, metric in enumerate(self.grid) if not metric.family.on_answers]

    @property
    def voted(self) -> list[int]:
        """Positions in the grid of the votes between answers."""
        return [i for i, metric in enumerate(self.grid) if metric.family.on_answers]


class Analysis:
    """One system's posterior, finite estimates, and what a reader should know of them.

    Parameters
    ----------
    outcomes : Outcomes
    index : int
        Position of the system.
    request : Request
    rng : numpy.random.Generator
        For votes between answers, whose variances come from draws.

    Attributes
    ----------
    posterior : SystemPosterior
        Metrics of the grid; on categories then the probability to reach each higher score.
    estimate : ndarray, shape (metrics,)
        Unbiased finite-law values; NaN where k exceeds the trials of some question.
    remarks : list of str
    sampled : bool
        Whether the hyperparameters had to be sampled, and are not integrated.
    """

    def __init__(
        self, outcomes: Outcomes, index: int, request: Request, rng: np.random.Generator
    ) -> None:
        self._request, self._name = request, outcomes.systems[index]
        metrics = list(request.grid)
        self._metrics = [metrics[i] for i in request.judged]
        self.remarks: list[str] = []
        self.sampled = False
        self.estimate = np.full(len(metrics), np.nan)
        parts: list[tuple[list[int], SystemPosterior]] = []
        if request.on_categories:
            parts.append(self._on_categories(outcomes, index))
        elif self._metrics:
            parts.append(self._on_successes(outcomes, index))
        if request.voted:
            parts.append(self._on_answers(outcomes, index, rng))
        self.posterior = parts[0][1] if len(parts) == 1 else _joined(parts)

    def _on_successes(self, outcomes: Outcomes, index: int) -> tuple[list[int], SystemPosterior]:
        request = self._request
        states = States.of(outcomes.successes.values[index], outcomes.trials.values[index])
        share = states.count / states.questions
        for i, metric in zip(request.judged, self._metrics, strict=True):
            self.estimate[i] = share @ finite(metric.credit, states.successes, states.trials)
        prior: Prior = request.prior  # type: ignore[assignment]
        posterior = system_posterior(request.pooling, states, self._metrics, prior)
        self._sensitive = partial(
            prior_sensitivity, request.pooling, states, self._metrics, prior, posterior
        )
        asked = [one for one in request.requested if not one.family.on_answers]
        self.remarks += family_note(self._name, posterior.families, asked, int(states.trials.min()))
        return request.judged, posterior

    def _on_categories(self, outcomes: Outcomes, index: int) -> tuple[list[int], SystemPosterior]:
        request, scores = self._request, outcomes.dataset["score"].values
        prior: CategoryPrior = request.prior  # type: ignore[assignment]
        before = None if request.prior_counts is None else request.prior_counts[index]
        states = CategoryStates.of(outcomes.dataset["count"].values[index], before)
        judged = [Judged(metric.category_credit, scores) for metric in self._metrics]
        for i, one in zip(request.judged, judged, strict=True):
            found = category_finite(one.credit, states.counts, one.scores)
            self.estimate[i] = states.share @ found
        above = scores[reachable(scores)]
        reach = [Judged(CategoryCredit(1), (scores >= score).astype(float)) for score in above]
        posterior, warning = category_posterior(
            request.pooling, states, judged + reach, prior, sampled_fallback
        )
        if warning is not None:
            self.sampled = True
            self.remarks.append(f"{self._name}: {warning}.")
        self._sensitive = partial(
            category_sensitivity, request.pooling, states, judged, prior, sampled_fallback
        )
        size = len(request.grid)
        return [*request.judged, *range(size, size + len(above))], posterior

    def _on_answers(
        self, outcomes: Outcomes, index: int, rng: np.random.Generator
    ) -> tuple[list[int], SystemPosterior]:
        request, answers = self._request, outcomes.answers
        if answers is None:
            raise ArgumentError(
                "plurality@k is a vote between answers, and the data have none. Use ",
                Argument("answers", ..., "tally"), ", or name the column of a table: ",
                Argument("columns", {"answer": ...}, "tally"),
                ". The strict majority of right marks is 'maj@k'.",
            )  # fmt: skip
        metrics = list(request.grid)
        ks = [metrics[i].k for i in request.voted]
        ballots = answers.of(index)
        self.estimate[request.voted] = finite_estimates(ballots, ks)
        asked = {metric.k for metric in request.requested if metric.family.on_answers}
        self.remarks.extend(
            proxy_note(
                self._name, outcomes.successes.values[index], outcomes.trials.values[index],
                {k: self.estimate[i] for k, i in zip(ks, request.voted, strict=True) if k in asked},
            )
        )  # fmt: skip
        posterior = answer_posterior(ballots, ks, request.answer_prior, request.draws, rng)
        return request.voted, posterior

    def finish(self, statistics: NDArray[np.float64]) -> None:
        """Fill in the prior's share of the intervals, and note what pooling changed."""
        request = self._request
        note = outside_note(
            request.pooling, self._name, request.requested, request.grid, self.estimate, statistics
        )
        self.remarks.extend(note)
        if not self._metrics:
            return
        own = statistics[request.judged]
        statistics[request.judged, :, -1] = self._sensitive(own)


def _joined(parts: Sequence[tuple[list[int], SystemPosterior]]) -> SystemPosterior:
    """Put posteriors of different metrics side by side; their draws are independent."""
    order = np.argsort(np.concatenate([np.array(index) for index, _ in parts]))
    posteriors = [posterior for _, posterior in parts]

    def stacked(name: str) -> NDArray[np.float64]:
        return np.concatenate([getattr(one, name) for one in posteriors])[order]

    def distributions() -> Distributions:
        found = [one.distributions() for one in posteriors]
        questions = [each for pair in found for each in pair[0]]
        population = [each for pair in found for each in pair[1]]
        return [questions[i] for i in order], [population[i] for i in order]

    def draw(size: int, rng: np.random.Generator, keep_p: bool) -> Draws:
        drawn = [one.draw(size, rng, keep_p) for one in posteriors]
        metrics = np.concatenate([one.metrics for one in drawn], axis=1)[:, order]
        return Draws(metrics, drawn[0].hyper, drawn[0].p)

    return SystemPosterior(
        stacked("mean"),
        stacked("variance_trial"),
        stacked("variance_question"),
        distributions,
        draw,
        posteriors[0].question_p,
        posteriors[0].hyper,
        {name: value for one in posteriors for name, value in one.diagnostics.items()},
    )


def sampled_fallback(states: CategoryStates, prior: DirichletHyperPrior) -> DirichletHyper:
    """Sample the hyperparameters where importance sampling cannot be trusted."""
    from bayesatk.models.categories import sample_hyperparameters

    # A seed of their own, so that statistics remain a function of the data.
    rng = np.random.default_rng(len(states.which))
    return sampled_hyper(*sample_hyperparameters(states.evidence, states.repeats, prior, rng))

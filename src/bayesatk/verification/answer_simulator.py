"""Votes between answers of which it is known how many there are, one system."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.question.ballot import plurality_latent
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.tally import tally
from bayesatk.models.votes import answer_draws as sampled_votes
from bayesatk.models.votes import answer_entries, build_answers
from bayesatk.posterior.answers import VoteModel, answer_draws
from bayesatk.priors import AnswerPrior
from bayesatk.verification.simulators import DRAWS, Array, Metrics, Quantities, thinned_draws

_RIGHT = 0  # the answer that is right


@dataclass(frozen=True)
class AnswerSimulator:
    """Every question has the same number of answers, one of them right."""

    questions: int
    trials: int
    metrics: Metrics
    prior: AnswerPrior

    @property
    def _ks(self) -> list[int]:
        return [metric.k for metric in self.metrics]

    def simulate(self, rng: np.random.Generator) -> tuple[dict[str, float], Any]:
        """Draw probabilities of the answers, and answers."""
        choices = self.prior.choices
        assert choices is not None
        p = rng.dirichlet(np.full(choices, self.prior.concentration), self.questions)
        each = plurality_latent(p, np.arange(choices) == _RIGHT, self._ks)
        truth = {}
        for metric, values in zip(self.metrics, each.T, strict=True):
            truth[f"{metric.label} questions"] = float(values.mean())
            truth[f"{metric.label} first"] = float(values[0])
        return truth, rng.multinomial(self.trials, p)

    def exact(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw from the closed form."""
        answers = _outcomes(data).answers
        assert answers is not None
        ballots = answers.of(0)
        posterior = VoteModel(ballots, self.prior, DRAWS, rng).fit(self.metrics)
        together = posterior.draw(DRAWS, rng, False).metrics[:, :, 0]
        first = answer_draws(ballots[:1], self._ks, self.prior, DRAWS, rng)[:, 0]
        return self._named(together, first)

    def sampled(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw with NUTS."""
        program = _answer_program(self.prior, self.questions)
        outcomes = _outcomes(data)
        entries = answer_entries(outcomes, self.prior)
        counts = {"answer_count": entries["count"].astype(float)}
        posterior = thinned_draws(program, counts, rng)
        together = sampled_votes(outcomes, entries, self._ks, posterior, rng)[0][:, 0, :, 0]
        mine = entries["cell"] == 0
        p = posterior["answer_p"].transpose("chain", "draw", "entry").values[:, :, mine]
        first = plurality_latent(p.reshape(-1, mine.sum()), entries["correct"][mine], self._ks)
        return self._named(together, first)

    def _named(self, together: Array, first: Array) -> Quantities:
        found = {}
        for i, metric in enumerate(self.metrics):
            found[f"{metric.label} questions"] = together[:, i]
            found[f"{metric.label} first"] = first[:, i]
        return found


def _outcomes(counts: NDArray[np.int64]) -> Outcomes:
    """Answers "0", "1" ... of so many trials each, and which is right."""
    rows = [np.repeat(np.arange(len(own)), own).astype(str).tolist() for own in counts]
    return tally(None, answers=rows, reference=[str(_RIGHT)] * len(rows))


@cache
def _answer_program(prior: AnswerPrior, questions: int) -> Any:
    import nutpie

    template = _outcomes(np.eye(1, prior.choices, dtype=np.int64).repeat(questions, axis=0))
    return nutpie.compile_pymc_model(build_answers(template, prior))

"""What a system's posterior says of its next run, and of its mean beside a number."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.core.pooling.states import States
from bayesatk.core.question.beta_binomial import beta_binomial_pmf
from bayesatk.guessing.distributions import LargestPoissonBinomial
from bayesatk.metrics.credit import Array
from bayesatk.metrics.grid import parse
from bayesatk.posterior.models_of import Declared, model_of
from bayesatk.results.difficulty import difficulty_draws
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGETS


@dataclass(frozen=True)
class System:
    """Counts and posterior draws of one system."""

    successes: NDArray[np.int64]
    trials: NDArray[np.int64]
    fit: Result
    index: int

    @classmethod
    def of(cls, fit: Result, index: int) -> "System":
        """Return one system of a result of right and wrong."""
        successes, trials = fit.right_of_all("random_baseline")
        return cls(successes[index], trials[index], fit, index)

    def prob_exceeds(self, value: float, rng: np.random.Generator) -> tuple[Array, Array]:
        """Posterior probability that the mean exceeds a value, by target, with its error."""
        if self.fit.sampled:
            return self._share_above(value)
        posterior = model_of(self.fit, self.index).fit(parse("bayes"))
        probability, error = np.zeros(2), np.zeros(2)
        for target, (exact, *_) in enumerate(posterior.distributions()[: len(TARGETS)]):
            if exact is not None:
                probability[target] = 1.0 - float(exact.cdf(value))
            else:
                drawn = posterior.draw(4000, rng, False).metrics[None, :, 0, target]
                shares = (drawn > value).astype(float)
                probability[target], error[target] = shares.mean(), _standard_error(shares)[0]
        return probability, error

    def _share_above(self, value: float) -> tuple[Array, Array]:
        """Share of the sampled means above a value."""
        held = self.fit.posterior.data_vars
        name = next((name for name in ("bayes", "pass_at_k") if name in held), None)
        if name is None:
            raise ValueError(
                "a sampled result must have the metric 'bayes' for the random baseline; it has "
                f"{sorted(map(str, held))}. Sample it again with 'bayes' among them."
            )
        draws = self.fit.posterior[name].isel(system=self.index).sel(target=list(TARGETS))
        if "k" in draws.dims:
            draws = draws.sel(k=1)
        above = (draws > value).astype(float).transpose("target", "chain", "draw")
        shares = above.values.reshape(len(TARGETS), -1)
        return shares.mean(axis=1), _standard_error(shares)

    def prob_beats(
        self, best: LargestPoissonBinomial, rng: np.random.Generator
    ) -> tuple[float, float, float]:
        """Probabilities that a new run beats, and ties with, a new best of the guessers."""
        counts, run_index = np.unique(self.new_runs(rng), return_inverse=True)
        below, same = best.cdf(counts - 1)[run_index], best.pmf(counts)[run_index]
        error = float(below.std() / np.sqrt(len(below)))
        return float(below.mean()), float(same.mean()), error

    def new_runs(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Posterior predictive number correct of a new run, as many trials of each question."""
        fit, prior = self.fit, self.fit.prior
        if fit.pooling == "complete" and fit.grouping is None:
            return rng.binomial(int(self.trials.sum()), fit.hyper("mean_p", self.index))
        if Declared.of_result(fit).structured:
            drawn = model_of(fit, self.index).fit(parse("bayes")).draw(fit.size, rng, True)
            assert drawn.p is not None
            return np.asarray(rng.binomial(self.trials, drawn.p).sum(axis=1))
        difficulty = difficulty_draws(fit.tree, self.index)
        if difficulty is None:  # a fixed prior of every question
            total = prior.alpha + prior.beta
            ends = (prior.alpha / total, 1.0 / (total + 1.0))
            difficulty = Difficulty.of_beta(*(np.full(fit.size, end) for end in ends))
        states = States.of(self.successes, self.trials)
        runs = np.zeros(len(difficulty), np.int64)
        for c, n, count in zip(states.successes, states.trials, states.count, strict=True):
            split = rng.multinomial(int(count), difficulty.parts_given(c, n))
            runs += n * split[:, -1]
            for j in range(split.shape[1] - 2):
                posterior_shapes = difficulty.alpha[:, j] + c, difficulty.beta[:, j] + (n - c)
                runs += _new_successes(split[:, j], int(n), *posterior_shapes, rng)
        return runs


def _new_successes(
    count: NDArray[np.int64], n: int, a: Array, b: Array, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Successes of so many questions with p ~ Beta(a, b) together, n trials of each."""
    if n == 1:
        return rng.binomial(count, a / (a + b))
    most = int(count.max())
    if most <= n:
        p = rng.beta(a[:, None], b[:, None], (len(a), most))
        return np.asarray((rng.binomial(n, p) * (np.arange(most) < count[:, None])).sum(axis=1))
    # how many of these questions have 0, 1, ... right
    pmf = np.maximum(beta_binomial_pmf(n, a, b), 0.0)
    drawn = rng.multinomial(count, pmf / pmf.sum(axis=1, keepdims=True))
    return np.asarray(drawn @ np.arange(n + 1))


def _standard_error(shares: Array) -> Array:
    """Return standard errors of shares (rows), never below that of one uncertain draw."""
    size = shares.shape[1]
    mean = np.clip(shares.mean(axis=1), 0.5 / size, 1.0 - 0.5 / size)
    return np.asarray(np.sqrt(mean * (1.0 - mean) / size))

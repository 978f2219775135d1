"""Closed-form posteriors of the systems of a result on some questions, each worked out once."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.batches import in_batches
from bayesatk.core.engine.contrasts import Known
from bayesatk.metrics.grid import parse
from bayesatk.posterior.models_of import model_of
from bayesatk.posterior.posterior import Draws
from bayesatk.results.result import Result

Array = NDArray[np.float64]
DRAWS_OF_P = 200  # of every question, for spreads and covariances, which need no more


@dataclass(frozen=True)
class Subset:
    """Some systems of a result, on some of its questions."""

    systems: list[int]
    kept: NDArray[np.bool_]

    @classmethod
    def whole(cls, fit: Result) -> "Subset":
        """All systems, on all questions."""
        systems, questions = fit.trials.shape
        return cls(list(range(systems)), np.ones(questions, bool))

    def share(self, fit: Result) -> Array:
        """Return the share of every question of the part in a mean over them."""
        own = np.ones(int(self.kept.sum())) if fit.weight is None else fit.weight[self.kept]
        return np.asarray(own / own.max() / (own / own.max()).sum())


def data_keys(fit: Result, part: Subset) -> list[bytes]:
    """Return all that a system's posterior depends on, equal for systems with the same data."""
    arrays: list[NDArray[Any]] = [
        fit.trials,
        fit.counts,
    ]
    arrays += [] if fit.prior_counts is None else [fit.prior_counts]
    own = b"" if fit.weight is None else fit.weight[part.kept].tobytes()
    keys = [
        own + b"".join(each[one][part.kept].tobytes() for each in arrays) for one in part.systems
    ]
    if fit.judges is not None:
        marked_by = fit.judges.among(part.systems).by_system
        keys = [key + repr(judge).encode() for key, judge in zip(keys, marked_by, strict=True)]
    if fit.voted and fit.data.answers is not None:
        answers = fit.data.answers.on_questions(part.kept)
        for row, system in enumerate(part.systems):
            own = answers.system == system
            columns = np.stack([answers.question, answers.correct, answers.count])[:, own]
            entries = columns[:, np.lexsort(columns[::-1])]
            keys[row] += entries.tobytes() + answers.unanswered[system].tobytes()
    return keys


@dataclass(frozen=True)
class WorkedOut:
    """What is needed of one system's posterior on some questions.

    Parameters
    ----------
    mean, sd : ndarray, shape (metrics, target)
    known : list of list
        Distributions by target; None where only draws are.
    few : Draws
        Some draws of means and of every p, by random numbers that the data give.
    draw : callable, optional
        As of a `SystemPosterior`; where a distribution is None.
    expected : pair of ndarray, optional
        As of a `SystemPosterior`.
    """

    mean: Array
    sd: Array
    known: list[list[Known | None]]
    few: Draws
    draw: Callable[[int, np.random.Generator, bool], Draws] | None
    expected: tuple[Array, Array] | None


class Posteriors:
    """Closed-form posteriors of the systems of a result on some questions, each worked out once."""

    def __init__(
        self, fit: Result, rng: np.random.Generator, progress: bool | None = False
    ) -> None:
        self.progress = progress
        self._fit, self._seed = fit, int(rng.integers(2**63))
        self._found: dict[bytes, WorkedOut] = {}
        self.marks = list(fit.grid.judged)
        metrics = list(fit.grid.judged.values()) or list(parse("pass@1"))
        self.metrics = [fit.scale.judged(one) for one in metrics]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was worked out: other processes get data, and fill in their own."""
        return self.__dict__ | {"_found": {}}

    def of(self, system: int, kept: NDArray[np.bool_]) -> WorkedOut:
        """Return what is needed of one system."""
        (key,) = data_keys(self._fit, Subset([system], kept))
        if key not in self._found:
            self._found[key] = self._work_out(system, kept, key)
        return self._found[key]

    def prepare(self, part: Subset, client: Any) -> None:
        """Work out what is needed of the systems of a part, each with other data as a task."""
        keys = data_keys(self._fit, part)
        starts = sorted({key: i for i, key in reversed(list(enumerate(keys)))}.values())
        run = partial(_work_out, self, part, keys)
        for i, one in in_batches(run, starts, client, "Comparing", self.progress):
            self._found[keys[i]] = one

    def _work_out(self, system: int, kept: NDArray[np.bool_], key: bytes) -> WorkedOut:
        posterior = model_of(self._fit, system, kept).fit(self.metrics)
        known: list[list[Known | None]] = []
        if self.marks:
            known = [
                [None if one is None else Known(one) for one in each]
                for each in posterior.distributions()
            ]
        few = posterior.draw(DRAWS_OF_P, np.random.default_rng([self._seed, zlib.crc32(key)]), True)
        drawn = bool(posterior.groups) or any(None in each for each in known)
        draw = posterior.draw if drawn else None
        expected = None if posterior.expected is None else posterior.expected()
        return WorkedOut(posterior.mean, posterior.sd, known, few, draw, expected)


@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
def _work_out(posteriors: Posteriors, part: Subset, keys: list[bytes], index: int) -> WorkedOut:
    return posteriors._work_out(part.systems[index], part.kept, keys[index])

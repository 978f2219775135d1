"""What is seen of systems where it is not right and wrong themselves: marks, labels, scores.

A system has the observation of the model of one system (`bayesatk.core.program.observations`),
whose Beta law has here the mean ``expit(mu + a z)`` and the icc of the system: its offsets are
``a z``. What else is not known, as the error rates of a judge or the base of scored levels, is a
function of scores that are standard normal a priori, in columns of parameters behind those of the
systems.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtr

from bayesatk._tools.arrays import Array, Indices, Ints, Rng
from bayesatk.core.pooling.states import States
from bayesatk.priors.fields import Fields

_LIKELIEST = 1.0 - 1e-16  # probability below one


class Law(Protocol):
    """Law of p given hyperparameters."""

    @property
    def fields(self) -> Fields:
        """Of all hyperparameters: ``mean``, ``icc`` and others."""
        ...


class Observation(Protocol):
    """What trials of a system say of p; tables as of `bayesatk.core.program.observations`."""

    @property
    def states(self) -> States:
        """Distinct counts."""
        ...

    @property
    def law(self) -> Law:
        """Distribution of p given hyperparameters and an offset."""
        ...

    def floats(self, columns: int) -> int:
        """Return how many numbers tables of so many columns hold at once, at an offset."""
        ...

    def log_states(self, theta: Array, offset: Array) -> Array:
        """Log probability of each state's trials; (points, offsets, states)."""
        ...

    def cumulants(self, metrics: Sequence[Any], theta: Array, offset: Array) -> Array:
        """Three cumulants given a state; (points, offsets, states, metrics, 3)."""
        ...

    def new_cumulants(self, metrics: Sequence[Any], theta: Array, offset: Array) -> Array:
        """Mean and variance of metrics of a new question; (points, offsets, metrics, 2)."""
        ...

    def new_means(self, metrics: Sequence[Any], theta: Array, offset: Array) -> Array:
        """Means of metrics of a new question; (points, offsets, metrics)."""
        ...

    def draw(self, theta: Array, offset: Array, state: Indices, rng: Rng) -> Array:
        """Draw p of questions in states (questions,), at offsets (points, questions)."""
        ...


@dataclass(frozen=True)
class Observed:
    """Observations of systems.

    Parameters
    ----------
    by_system : tuple of Observation
        Each with the states of the same questions.
    """

    by_system: tuple[Any, ...]

    @cached_property
    def fields(self) -> list[Fields]:
        """Of each system what is not known but mean and icc."""
        return [
            Fields(tuple(field for field in one.law.fields if field.name not in ("mean", "icc")))
            for one in self.by_system
        ]

    @cached_property
    def scores(self) -> int:
        """Scores of a system, at most."""
        return max(fields.size for fields in self.fields)

    @property
    def columns(self) -> int:
        """Columns of parameters that the scores take."""
        return len(self.by_system) * -(-self.scores // 3)

    @cached_property
    def place(self) -> Ints:
        """Place of every score among parameters (3, columns), flat; (systems, scores).

        Of scores that a system does not have, that of a parameter without influence.
        """
        systems, score = len(self.by_system), np.arange(self.scores)
        width, each = systems + self.columns + 1, -(-self.scores // 3)
        column = systems + np.arange(systems)[:, None] * each + score // 3
        have = score < np.array([fields.size for fields in self.fields])[:, None]
        return np.where(have, score % 3 * width + column, 3 * width - 1)

    def at(self, theta: Array, system: int) -> Array:
        """Return hyperparameters of a system's observation at parameters (points, 3, columns)."""
        every, others = self.by_system[system].law.fields, self.fields[system]
        values = np.empty((len(theta), every.size))
        values[:, every.slices["mean"]] = theta[:, 0, system, None]
        values[:, every.slices["icc"]] = theta[:, 2, system, None]
        scores = theta.reshape(len(theta), -1)[:, self.place[system, : others.size]]
        drawn = others.from_uniform(np.minimum(ndtr(scores), _LIKELIEST))
        for field in others:
            values[:, every.slices[field.name]] = drawn[:, others.slices[field.name]]
        return values

    def at_nodes(self, theta: Array, system: int, z: Array) -> tuple[Array, Array]:
        """Return these, and offsets at difficulties; (points, nodes)."""
        return self.at(theta, system), np.exp(theta[:, 1, system])[:, None] * z

    def of_states(self, system: int, states: Ints) -> Any:
        """Return the observation of some states of a system."""
        observation = self.by_system[system]
        counts, before = observation.states.counts[states], observation.states.prior[states]
        size = len(states)
        return replace(observation, states=States(counts, before, np.ones(size), np.arange(size)))

    def with_kinds(self, kinds: Ints) -> "Observed":
        """Return it of other questions, with trials of each kind (systems, questions, kinds)."""
        return replace(self, by_system=tuple(
            replace(observation, states=States.of_counts(counts))
            for observation, counts in zip(self.by_system, kinds, strict=True)
        ))  # fmt: skip

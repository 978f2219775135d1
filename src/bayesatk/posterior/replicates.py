"""New questions in place of those of a system: what replicated trials are drawn from."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bayesatk._tools.arrays import Array, Flags, Ints, Rng
from bayesatk.core.pooling.shapes import draw_shapes
from bayesatk.core.program.predictor import Predictor
from bayesatk.data.answers import Ballots
from bayesatk.data.verifier import NO_ANSWER
from bayesatk.posterior.best_of import BestOfModel
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.pooled_answers import RIGHT, WRONG, PooledVotes
from bayesatk.posterior.weighted_votes import WeightedVotes


def draw_new_p(model: CountModel, size: int, rng: Rng) -> tuple[Array, dict[str, Array]]:
    """Draw hyperparameters and effects of groups, and p of a new question in place of each.

    A new question has the group, the covariates and the prior trials of the one that it replaces.

    Parameters
    ----------
    model : CountModel
    size : int
        Draws.
    rng : numpy.random.Generator

    Returns
    -------
    p : ndarray, shape (draws, questions), or (draws, questions, categories)
    rates : dict
        What results report of a judge that errs, by name.
    """
    counted = model.counted
    number = rng.multinomial(size, [share for _, share in counted])
    drawn: list[Array] = []
    rates: dict[str, list[Array]] = {}
    for (fit, _), n in zip(counted, number.tolist(), strict=True):
        if not n:
            continue
        theta = fit.points.theta[rng.choice(len(fit.points.weight), n, p=fit.points.weight)]
        drawn.append(_new_p(fit.predictor, theta, rng))
        if model.marking is not None:
            law: Any = fit.predictor.observation.law
            for name, values in model.marking.rates.reported(theta, law.fields).items():
                rates.setdefault(name, []).append(values)
    return np.concatenate(drawn), {name: np.concatenate(rate) for name, rate in rates.items()}


def _new_p(predictor: Predictor, theta: Array, rng: Rng) -> Array:
    """Draw p of new questions at points, one set at each."""
    cells, observation = predictor.cells, predictor.observation
    offset = predictor.offsets(theta)
    if predictor.effective and len(theta):
        for rows in predictor.blocks(theta, 2):
            effects = predictor.effects(theta[rows])
            offset[rows] += effects.draw(np.arange(len(rows)), rng)[:, cells.group]
    # Behind the states that were seen, from which an observation knows how fine its tables must be.
    states, number = observation.states, len(observation.states)
    untried = replace(
        states, counts=np.concatenate([states.counts, np.zeros_like(states.counts)]),
        prior=np.tile(states.prior, (2, 1)), count=np.append(states.count, np.zeros(number)),
    )  # fmt: skip
    unseen: Any = replace(observation, states=untried)  # type: ignore[type-var]
    new = number + cells.state[cells.which]
    return np.asarray(unseen.draw(theta, offset[:, cells.which], new, rng))


class NewTrials(NamedTuple):
    """Trials of a new question, one by one.

    Parameters
    ----------
    right : ndarray of bool, shape (trials,)
    score : ndarray, shape (trials,)
        Of the verifier; 0 without one.
    answer : ndarray of int, shape (trials,)
        Numbers of the answers; -1 where there is none.
    """

    right: Flags
    score: Array
    answer: Ints

    @property
    def ballots(self) -> Ballots:
        """The votes."""
        votes = self.answer != NO_ANSWER
        count = np.bincount(self.answer[votes])
        correct = np.zeros(len(count), bool)
        correct[self.answer[votes]] = self.right[votes]
        return Ballots(count, correct, int((~votes).sum()) or None)


@dataclass(frozen=True)
class TrialDraws:
    """Draws of all that trials of new questions follow, whose answers or scores are known.

    Parameters
    ----------
    right, silent : ndarray, shape (draws, questions)
        Share of right trials, and of those without an answer among the others.
    theta : dict of ndarray, shape (draws,)
        How much answers differ, by whether they are right; without an entry they are the same.
    levels : tuple of ndarray, shape (draws, questions, bins)
        Distribution of the scores of wrong and of right trials, if there is a verifier.
    score : ndarray, shape (bins,)
        Of the bins.
    """

    right: Array
    silent: Array
    theta: dict[bool, Array]
    levels: tuple[Array, ...]
    score: Array

    @classmethod
    def of(
        cls, model: PooledVotes | BestOfModel | WeightedVotes, size: int, rng: Rng
    ) -> "TrialDraws":
        """Draw from the posterior of a model, a new question in place of each of its own."""
        votes = model.votes if isinstance(model, WeightedVotes) else model
        marks = votes.marks if isinstance(votes, BestOfModel) else votes.right
        right = draw_new_p(marks, size, rng)[0]
        silent, theta = np.zeros_like(right), {}
        if isinstance(votes, PooledVotes):
            if votes.silent is not None:
                silent = draw_new_p(votes.silent, size, rng)[0]
            sides = {WRONG: False, RIGHT: True}
            theta = {sides[name]: law.draw(size, rng) for name, law in votes.agreements.items()}
        if isinstance(model, PooledVotes):
            return cls(right, silent, theta, (), np.zeros(1))
        if isinstance(model, WeightedVotes):
            bins = model.scores.votes_in_bins([ballot.correct for ballot in model.votes.ballots])
        else:
            bins = model.scores.in_bins(right.shape[1])
        shapes = (draw_shapes(counts, bins.position, size, rng) for counts in bins.counts)
        levels = tuple(shape.of_new(slice(None), right.shape[1], rng) for shape in shapes)
        score = [part.mean() for part in np.split(bins.score, bins.first[1:-1])]
        return cls(right, silent, theta, levels, np.array(score))

    def of_question(self, draw: int, question: int, size: int, rng: Rng) -> NewTrials:
        """Draw so many trials of a question."""
        right = rng.random(size) < self.right[draw, question]
        silent = ~right & (rng.random(size) < self.silent[draw, question])
        level, answer = np.zeros((2, size), np.int64)
        for side, chosen in ((False, ~right & ~silent), (True, right)):
            theta = float(self.theta[side][draw]) if side in self.theta else 0.0
            # Even numbers are wrong answers, odd ones right.
            answer[chosen] = 2 * _agreeing(theta, int(chosen.sum()), rng) + side
        answer[silent] = NO_ANSWER
        for chances, chosen in zip(self.levels, (~right, right), strict=False):
            chance = chances[draw, question]
            level[chosen] = rng.choice(len(chance), int(chosen.sum()), p=chance)
        return NewTrials(right, self.score[level], answer)


def _agreeing(theta: float, size: int, rng: Rng) -> Ints:
    """Draw answers one by one, each the same as one before or new (Ewens' law).

    Examples
    --------
    >>> _agreeing(0.0, 3, np.random.default_rng(0)).tolist()
    [0, 0, 0]
    """
    answers: list[int] = []
    for before in range(size):
        place = int(rng.random() * (before + theta)) if before else 0
        answers.append(answers[place] if place < before else max(answers, default=-1) + 1)
    return np.array(answers, np.int64)

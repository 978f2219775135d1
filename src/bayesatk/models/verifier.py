"""Best of k by a verifier's scores, and votes that these weight, from PyMC.

Scores fall into bins, whose probabilities are shapes that questions share, tilted by question; the
shapes and every tilt are variables. Metrics are worked out by their definition alone: trials are
drawn at the drawn parameters, also of new questions, and the best is chosen or the votes are added.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr

from bayesatk._tools.arrays import Array, Flags, Ints, Rng
from bayesatk.data.study import Study
from bayesatk.data.verifier import ScoreBins
from bayesatk.results.question_laws import QuestionLaws
from bayesatk.results.question_means import Shares, grouped_means

NOBODY = -1
SHAPE_PRIOR = 0.2  # Dirichlet parameter of every bin, as of `bayesatk.core.pooling.shapes`
_REPEATS = 64  # of the trials of a question at every draw; in two halves
_NEW = 256  # questions at every draw, which differ by more than trials do; in two halves
_ABSENT = -1e10  # log probability of a bin that another system has


def build_scores(study: Study, bins: Sequence[ScoreBins]) -> pm.Model:
    """Build the model of the scores of wrong and of right trials, by system.

    Parameters
    ----------
    study : Study
    bins : sequence of ScoreBins
        One for each system.

    Returns
    -------
    pymc.Model
        ``bin_mass``, ``tilt_spread`` and ``tilt``, whose first axis is that of wrong and right.
    """
    counts = np.zeros((2, len(bins), bins[0].counts.shape[1], max(len(b.position) for b in bins)))
    position = np.zeros((len(bins), counts.shape[3]))
    absent = np.full(position.shape, _ABSENT)
    for system, of_system in enumerate(bins):
        inside = slice(len(of_system.position))
        counts[:, system, :, inside] = of_system.counts
        position[system, inside], absent[system, inside] = of_system.position, 0.0
    coords = {"kind": ["wrong", "right"], "system": study.outcomes.systems}
    with pm.Model(coords=coords) as model:
        mass = pm.Gamma("bin_mass", np.float64(SHAPE_PRIOR), 1.0, shape=counts[:, :, 0].shape)
        spread = pm.HalfNormal("tilt_spread", 1.0, dims=("kind", "system"))
        x = pm.Normal("tilt", 0.0, 1.0, shape=counts.shape[:3])
        powers = pt.log(mass)[:, :, None] + (spread[:, :, None] * x)[..., None] * position[:, None]
        total = pt.logsumexp(powers + absent[:, None], axis=-1, keepdims=True)
        pm.Potential("log_likelihood", (counts * (powers - total)).sum())
    return model


@dataclass(frozen=True)
class ScoreDraws:
    """Draws of the distributions of one system's scores.

    Parameters
    ----------
    log_mass : ndarray, shape (draws, 2, bins)
    spread : ndarray, shape (draws, 2)
    tilt : ndarray, shape (draws, 2, questions)
    bins : ScoreBins
    """

    log_mass: Array
    spread: Array
    tilt: Array
    bins: ScoreBins

    @classmethod
    def of(cls, posterior: xr.Dataset, system: int, bins: ScoreBins) -> "ScoreDraws":
        """Read the draws of a system."""
        mass, spread, tilt = (
            np.concatenate(posterior[name].values)[:, :, system]
            for name in ("bin_mass", "tilt_spread", "tilt")
        )
        return cls(np.log(mass[..., : len(bins.position)]), spread, tilt, bins)

    def draw(self, right: Flags, question: int | Ints, rng: Rng) -> tuple[Ints, Array]:
        """Draw bins and scores of trials (draws, repeats, k) that are right or wrong.

        Of a question, or of new ones.
        """
        tried = isinstance(question, int)
        x = self.tilt[..., question] if tried else rng.standard_normal(self.spread.shape)
        powers = self.log_mass + (self.spread * x)[..., None] * self.bins.position
        chance = np.exp(powers - powers.max(axis=-1, keepdims=True))
        of_wrong, of_right = (categories(chance[:, kind], right.shape, rng) for kind in range(2))
        entry = np.where(right, of_right, of_wrong)
        first, last = self.bins.first[entry], self.bins.first[entry + 1]
        return entry, self.bins.score[rng.integers(first, np.maximum(last, first + 1))]


@dataclass(frozen=True)
class DrawnTrials:
    """Trials of one system, of which the one with the highest score counts.

    Parameters
    ----------
    p : ndarray, shape (draws, questions)
        Of a right trial.
    laws : QuestionLaws, optional
        Of new questions, where there is a law.
    scores : ScoreDraws
    """

    p: Array
    laws: QuestionLaws | None
    scores: ScoreDraws

    def credits(
        self, question: int | Ints, p: Array, repeats: int, ks: Sequence[int],
        rng: Rng, new_group: bool = False,
    ) -> Array:  # fmt: skip
        """Credits of drawn trials of a question; (draws, repeats, ks).

        Of an array of questions, by draw: of a new one like it, perhaps of a new group.
        """
        right = rng.random((len(p), repeats, max(ks))) < p[:, None, None]
        entry, _ = self.scores.draw(right, question, rng)
        del new_group  # p has it
        credits = []
        for k in ks:
            best = entry[..., :k] == entry[..., :k].max(axis=-1, keepdims=True)
            credits.append((best & right[..., :k]).sum(axis=-1) / best.sum(axis=-1))
        return np.stack(credits, axis=-1)


def added_votes(answer: Ints, right: Flags, weight: Array) -> Array:
    """Credit of votes (..., k) between answers whose weights are added; `NOBODY` has no vote.

    Examples
    --------
    >>> right, weight = np.array([True, False, False]), np.array([5.0, 2.0, 3.0])
    >>> [float(added_votes(np.array(answer), right, weight)) for answer in ([0, 1, 2], [0, 1, 1])]
    [1.0, 0.5]
    """
    total, shared = np.full(answer.shape, -1.0), np.ones(answer.shape)
    for index in range(answer.shape[-1]):
        same = (answer == answer[..., index, None]) & (answer != NOBODY)
        total[..., index] = np.where(same.any(axis=-1), (same * weight).sum(axis=-1), -1.0)
        shared[..., index] = np.maximum(same.sum(axis=-1), 1)
    best = (total == total.max(axis=-1, keepdims=True)) & (total >= 0.0)
    votes_won = best / shared  # an answer counts once, whatever its votes
    return np.asarray((votes_won * right).sum(axis=-1) / np.maximum(votes_won.sum(axis=-1), 1e-9))


def categories(chance: Array, shape: tuple[int, ...], rng: Rng) -> Ints:
    """Draw categories (draws, ...) by probabilities (draws, categories)."""
    ends = np.cumsum(chance, axis=1) / chance.sum(axis=1, keepdims=True)
    row = np.arange(len(chance))[:, None, None]
    index = np.searchsorted((ends + row[:, 0]).ravel(), row + rng.random(shape), "right")
    return np.asarray(np.minimum(index - row * chance.shape[1], chance.shape[1] - 1))


def drawn_means(
    trials: DrawnTrials, study: Study, ks: Sequence[int], rng: Rng
) -> tuple[Array, Array]:
    """Draws of means over questions (draws, ks, targets), and by group (draws, groups, ks, 2).

    Parameters
    ----------
    trials : DrawnTrials
    study : Study
    ks : sequence of int
    rng : numpy.random.Generator
    """
    shares = Shares.of(trials.p.shape[1], study.outcomes.weight, study.grouping)
    tried = trials.scores.bins.counts.any(axis=(0, 2))
    credits = (
        trials.credits(question, p, _REPEATS, ks, rng) for question, p in enumerate(trials.p.T)
    )
    halves = (np.stack([h.mean(axis=1) for h in np.split(c, 2, axis=1)]) for c in credits)
    on_questions, like = grouped_means(halves, shares, tried, rng)
    if study.bootstrapped:
        new = np.stack([shares.new_groups(half.swapaxes(1, 2), rng) for half in like[:1]] * 2)
    else:
        groups = range(len(shares.outer))
        of_new = [_means_of_new(trials, shares, ks, group, rng) for group in groups]
        like = np.stack(of_new, axis=2)
        new = _means_of_new(trials, shares, ks, None, rng) if shares.grouped else like[:, :, 0]
    by_group = np.stack([on_questions, like], axis=-1)
    whole = _settled(np.einsum("hdgkt,g->hdkt", by_group, shares.outer))
    if shares.grouped:
        whole = np.concatenate([whole, _settled(new)[..., None]], axis=-1)
    return whole, _settled(by_group)


def _means_of_new(
    trials: DrawnTrials,
    shares: Shares,
    ks: Sequence[int],
    group: int | None,
    rng: Rng,
) -> Array:
    """Means over new questions of a group, or of new groups, from two halves; (2, draws, ks)."""
    means = np.zeros((2, len(trials.p), len(ks)))
    share = shares.matrix @ shares.outer if group is None else shares.matrix[:, group]
    for number in range(_NEW):
        question = rng.choice(len(share), size=len(trials.p), p=share / share.sum())
        assert trials.laws is not None  # else questions are drawn anew
        p = new_p(trials.laws, question, group is None, rng)
        credit = trials.credits(question, p, 1, ks, rng, group is None)[:, 0]
        means[number % 2] += 2.0 / _NEW * credit
    return means


def new_p(laws: QuestionLaws, question: Ints, new_group: bool, rng: Rng) -> Array:
    """Draw p of a new question like one of these in each draw, of its group or of a new one."""
    if laws.difficulty is None:  # all questions have one p
        return laws.typical
    if new_group and laws.group_effect is not None:
        assert laws.group_sd is not None
        effect = laws.group_sd * rng.standard_normal(len(laws.group_sd))
        shape = laws.group_effect.shape
        laws = replace(laws, group_effect=np.broadcast_to(effect[:, None], shape))
    p = np.empty(len(question))
    for index in np.unique(question):
        draws = np.flatnonzero(question == index)
        ((_, law),) = laws.alike(np.array([index]))
        assert law.difficulty is not None
        p[draws] = law.difficulty.among(draws).draw_p(1, rng)[:, 0]
    return p


def _settled(halves: Array) -> Array:
    """Return the means of two halves, moved towards their mean until their noise is gone."""
    means = halves.mean(axis=0)
    noise = ((halves[0] - halves[1]) ** 2).mean(axis=0) / 4.0
    signal_share = np.clip(1.0 - noise / np.maximum(means.var(axis=0), 1e-300), 0.0, 1.0)
    return np.asarray(means.mean(axis=0) + np.sqrt(signal_share) * (means - means.mean(axis=0)))


def best_draws(
    study: Study, run: Callable[[pm.Model], xr.DataTree],
    of_marks: Callable[[int], tuple[Array, QuestionLaws | None]], rng: Rng,
) -> tuple[list[tuple[Array, Array]], xr.DataTree]:  # fmt: skip
    """Return draws of best-of-k of every system, as of `drawn_means`, and those of its scores.

    Parameters
    ----------
    study : Study
    run : callable
        Samples a model.
    of_marks : callable
        Draws of p of a system's questions, and their laws.
    rng : numpy.random.Generator
    """
    ks = [metric.k for metric in study.grid.verified.values() if not metric.weighted]
    systems, questions = study.outcomes.trials.shape
    bins = [study.outcomes.by_score.of(system).in_bins(questions) for system in range(systems)]
    trace = run(build_scores(study, bins))
    scores = trace["posterior"].to_dataset()
    draws = []
    for system, of_system in enumerate(bins):
        trials = DrawnTrials(*of_marks(system), ScoreDraws.of(scores, system, of_system))
        draws.append(drawn_means(trials, study, ks, rng))
    return draws, trace

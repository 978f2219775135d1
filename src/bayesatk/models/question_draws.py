"""What draws of a sampled model say of single questions: their law, and p given their trials.

`bayesatk.results.question_laws` has the laws; here are expectations, likelihoods and draws of p
given trials, which the closed forms have in ways of their own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import betabinom, binom

from bayesatk._tools.arrays import Array, Indices, Ints, Rng
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.question.dirichlet_multinomial import log_sequence_probability
from bayesatk.data.study import Study
from bayesatk.metrics.credit import log_choose
from bayesatk.results.difficulty_draws import flat_draws
from bayesatk.results.question_laws import QuestionLaws

Expectation = Callable[[Any], Array]
_POSITIVE_FLOOR = 1e-300  # of a sum of gamma variables
_MIN_ICC = 1e-8  # of the rates of a judge, as in `bayesatk.models.judged_marks`


def all_trials(study: Study) -> Array:
    """Trials (system, question, category), with those before at their weight."""
    counts = study.counts.astype(float)
    return counts if study.prior_by_kind is None else counts + study.prior_by_kind


def chosen(families: Sequence[Nodes], choice: Ints) -> Nodes:
    """Return, at every position, the draw of the family chosen there."""
    all_families = Nodes.joined(families, [1.0] * len(families))
    return all_families.among(choice * len(choice) + np.arange(len(choice)))


def field_values(difficulty: Nodes) -> dict[str, Array]:
    """Return hyperparameters by the names of fields, of which a family has some; (draws, ...)."""
    share = difficulty.share[:, 0]
    return {
        "mean": difficulty.mean,
        "icc": difficulty.icc,
        "share": share,
        "atoms": np.column_stack([difficulty.atoms, share]),
    }


def difficulty_of(values: Mapping[str, Array]) -> Nodes:
    """Return the difficulty distributions of hyperparameters by the names of fields, (draws, ...).

    Examples
    --------
    >>> law = difficulty_of({"mean": np.array([0.5]), "icc": np.array([0.25])})
    >>> law.alpha.tolist(), law.atoms.tolist()
    ([[1.5]], [[0.0, 0.0]])
    """
    mean, icc = (values[name].reshape(len(values[name]), -1) for name in ("mean", "icc"))
    share = atoms = None
    if "share" in values:
        share = np.stack([values["share"], 1.0 - values["share"]], axis=1)
    if "atoms" in values:
        atoms, share = values["atoms"][:, :2], values["atoms"][:, 2:]
    return Nodes.of_moments(mean, np.broadcast_to(icc, mean.shape), share, atoms)


def traced_difficulty(posterior: xr.Dataset, system: int) -> Nodes | None:
    """Return the difficulty distribution in every draw of a model of one family.

    Draws of a mixture are put in the order of their means. A trace without a system dimension is
    of one system. Covariates and groups move these distributions.
    """
    if not {"mean_p", "icc"} <= set(posterior) or "category" in posterior["mean_p"].dims:
        return None
    fields = {"mean_p": "mean", "icc": "icc", "share": "share", "atoms": "atoms"}
    difficulty = difficulty_of(
        {
            field: flat_draws(posterior[name], system)
            for name, field in fields.items()
            if name in posterior
        }
    )
    order = np.argsort(difficulty.mean, axis=1, kind="stable")
    ordered = {
        name: np.take_along_axis(getattr(difficulty, name), order, axis=1)
        for name in ("share", "alpha", "beta")
    }
    return replace(difficulty, **ordered)


def traced_laws(
    study: Study, posterior: xr.Dataset, system: int, difficulty: Nodes | None
) -> QuestionLaws | None:
    """Return the laws of questions of one system, where the model has hyperparameters of them.

    Parameters
    ----------
    study : Study
    posterior : xarray.Dataset
        Draws of the model's variables.
    system : int
    difficulty : Nodes, optional
        Of right and wrong, in all draws, without an offset.
    """
    if study.pooling != "partial" or (difficulty is None and not study.scale.axes):
        return None
    rate_names = () if study.judge_rates is None else study.judge_rates[system].names
    names = ("mean_p", "icc", "slopes", "group_sd", "group_effect", "shape", *rate_names)
    drawn = {name: flat_draws(posterior[name], system) for name in names if name in posterior}
    if "group_effect" in drawn:
        drawn["group_effect"] = drawn["group_sd"][:, None] * drawn["group_effect"]
    return QuestionLaws.of_draws(study, drawn, system, difficulty)


# Expectations of new questions


def population_mean(posterior: xr.Dataset, system: int) -> Expectation | None:
    """Return the expected metric of a new question in each draw, where the model defines it.

    Parameters
    ----------
    posterior : xarray.Dataset
        Draws of one p of all questions, if there is one.
    system : int
    """
    if "mean_p" not in posterior:
        return None
    p = flat_draws(posterior["mean_p"], system)
    return lambda metric: np.asarray(metric.latent(p))


def log_parts(difficulty: Nodes, states: Array) -> Array:
    """Log probability of trials in their order, and of each Beta or atom, shares included.

    Parameters
    ----------
    difficulty : Nodes
    states : ndarray, shape (states, 2)
        Wrong and right trials, or fractions of trials.

    Returns
    -------
    ndarray, shape (draws, states, components + 2)
        The last two are of questions never and always solved.
    """
    parameters = np.stack([difficulty.beta, difficulty.alpha], axis=-1)[:, None]
    counts = np.broadcast_to(states[:, None], (len(parameters), len(states), *parameters.shape[2:]))
    wrong, right = states.T
    atoms = difficulty.atoms[:, None] * np.stack([right == 0.0, wrong == 0.0], axis=-1)
    with np.errstate(divide="ignore"):
        logs = np.log(difficulty.share)[:, None] + log_sequence_probability(parameters, counts)
        return np.concatenate([logs, np.log(atoms)], axis=-1)


# Probabilities given trials


def probabilities(laws: QuestionLaws, counts: Array, members: Indices, rng: Rng) -> Array:
    """Draw the probabilities of some questions given their trials; (draws, members, ...).

    Parameters
    ----------
    laws : QuestionLaws
        With partial pooling.
    counts : ndarray, shape (questions, categories)
        Trials of all questions, those before at their weight.
    members : ndarray of int
    rng : numpy.random.Generator
    """
    drawn: Array | None = None
    for questions, law in laws.alike(members):
        states, state_of = np.unique(counts[questions], axis=0, return_inverse=True)
        for number, state in enumerate(states):
            places = np.searchsorted(members, questions[state_of.ravel() == number])
            p = p_given(law, state, len(places), rng)
            if drawn is None:
                drawn = np.empty((len(p), len(members), *p.shape[2:]))
            drawn[:, places] = p
    assert drawn is not None
    return drawn


def p_given(law: QuestionLaws, counts: Array, size: int, rng: Rng) -> Array:
    """Draw probabilities of some questions with these counts; (draws, size, ...).

    Of marks the right trials are drawn first, beside those whose truth is known.
    """
    difficulty, rates = law.difficulty, law.rates
    if law.levels is not None:
        return law.levels.draw_p(counts, size, rng)
    if difficulty is None:
        alpha = law.alpha + counts
        gamma = rng.standard_gamma(alpha[:, None], (len(alpha), size, alpha.shape[1]))
        total = gamma.sum(axis=-1, keepdims=True)
        assert law.mean is not None
        return np.where(total > 0.0, gamma / np.maximum(total, _POSITIVE_FLOOR), law.mean[:, None])
    if rates is None:
        return success_p(difficulty, counts, size, rng)
    unmarked, marks = np.round(counts[:2]).astype(int)
    labelled_wrong, labelled_right = _labelled(counts).astype(int)
    unknown = unmarked + marks
    hidden = np.arange(unknown + 1)
    right, trials = hidden + labelled_right, unknown + labelled_wrong + labelled_right
    logs = difficulty.log_likelihood(right, trials - right) + log_choose(unknown, hidden)
    chance = np.exp(logs - logs.max(axis=1, keepdims=True))
    number = _drawn_columns(chance * chances_of_marks(rates, marks, unknown, counts[2:]), size, rng)
    p = np.empty(number.shape)
    for t in np.unique(number):
        draw, question = np.nonzero(number == t)
        seen = np.array([unknown - t + labelled_wrong, t + labelled_right], float)
        p[draw, question] = success_p(difficulty.among(draw), seen, 1, rng)[:, 0]
    return p


def _labelled(counts: Array) -> Array:
    """Wrong and right trials of known truth, of all kinds of trials of a question."""
    return np.array([counts[2:5].sum(), counts[5:].sum()])


def success_p(difficulty: Nodes, counts: Array, size: int, rng: Rng) -> Array:
    """Draws of p (draws, questions) of questions with these counts, by conjugacy.

    A question belongs to each Beta and atom with the probability that its counts give it; within a
    Beta its p is Beta again, and an atom is certain.

    Parameters
    ----------
    difficulty : Nodes
    counts : ndarray, shape (2,)
        Wrong and right trials, or fractions of trials.
    size : int
        Number of questions.
    rng : numpy.random.Generator
    """
    wrong, right = counts
    alpha, beta = difficulty.alpha, difficulty.beta
    number = alpha.shape[1]
    if number == 1 and not difficulty.atoms.any():
        return rng.beta(alpha + right, beta + wrong, (len(alpha), size))
    logs = log_parts(difficulty, counts[None])[:, 0]
    column = _drawn_columns(np.exp(logs - logs.max(axis=1, keepdims=True)), size, rng)
    rows, component = np.arange(len(alpha))[:, None], np.minimum(column, number - 1)
    p = rng.beta(alpha[rows, component] + right, beta[rows, component] + wrong)
    return np.asarray(np.where(column < number, p, (column > number).astype(float)))


def _drawn_columns(weight: Array, size: int, rng: Rng) -> Indices:
    """Draw columns in proportion to the weights in every row; (rows, size)."""
    edges = weight.cumsum(axis=1)
    u = rng.random((len(edges), size)) * edges[:, -1:]
    number = np.zeros(u.shape, np.intp)
    for edge in edges.T[:-1]:
        number += u >= edge[:, None]
    return number


def chances_of_marks(rates: Array, marks: int, trials: int, labels: Array) -> Array:
    """Probability of marks given each number of right trials, (draws, trials + 1).

    Parameters
    ----------
    rates : ndarray, shape (draws, 2), or 3 where they vary by question
    marks, trials : int
    labels : ndarray, shape (6,) or (0,)
        Further trials of the question, as of `bayesatk.data.Outcomes.kinds, of known truth`.
    """
    rate, right = rates[:, :2, None], np.arange(marks + 1)

    def log_chances(column: int, number: Indices, size: int) -> Array:
        if rates.shape[1] == 2:
            return np.asarray(binom.logpmf(number, size, rate[:, column]))
        total = 1.0 / np.maximum(rates[:, 2:], _MIN_ICC) - 1.0
        unmarked, marked = labels[[[4, 5], [1, 2]][column]]
        shapes = rate[:, column] * total + marked, (1.0 - rate[:, column]) * total + unmarked
        return np.asarray(betabinom.logpmf(number, size, *shapes))

    chances = [
        np.exp(log_chances(0, right, t) + log_chances(1, marks - right, trials - t))
        for t in range(trials + 1)
    ]
    return np.asarray(np.stack(chances).sum(axis=2).T)

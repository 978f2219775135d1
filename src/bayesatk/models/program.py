"""One PyMC model for every combination: structure, law, observation, pooling, one or many systems.

A question of a system has an offset on the logit scale, of its covariates and of its group. The law
is the distribution of its probabilities given the offset: a mixture of Dirichlet distributions (of
Betas, for right and wrong) and of atoms. Trials are seen as they are or marked by a judge that
errs; earlier trials count at a weight.

In the marginal form probabilities are integrated out over distinct questions. The full form has
them as variables and the counts as observed data, so that PyMC can simulate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesatk._tools.arrays import Array, Indices, Ints
from bayesatk.core.pooling.levels import shape_functions
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.scales import Scale
from bayesatk.data.study import Study
from bayesatk.models.levels import MixedLevels, level_vectors
from bayesatk.models.marks import (
    Rates,
    log_labels,
    log_marks,
    log_rising,
    logit_nodes,
    mark_rates,
    right_trials,
)
from bayesatk.priors import DirichletHyperPrior, HyperPrior
from bayesatk.priors.fields import Beta, Dirichlet, Field, Fields, HalfNormal, StudentT
from bayesatk.results.question_laws import concentration, declared_fields

Form = Literal["full", "marginal"]
Tensor = Any  # a symbolic array: PyTensor has no types to check
KINDS = ("never", "always", "between")  # of questions, where a law has atoms
COMPONENTS = ("first", "second")
_NEAR = 1e-12  # of an icc or a share to 0 or 1: beyond it the likelihood no longer changes
_LEAST = 1e-100  # of a Dirichlet parameter, so that its log-gamma is a number


def variable(field: Field) -> Tensor:
    """Add the variable of a field, by system, to the model in context."""
    name = "mean_p" if field.name == "mean" else field.name
    dims = ("system", *([field.dim] if field.dim else []))
    law = field.distribution
    # PyTensor works out the log-gammas of plain numbers that single precision holds in single
    # precision: evidence would be wrong by 1e-7, and by much more where parameters are large.
    if isinstance(law, Dirichlet):
        shares = "kind" if field.name == "atoms" else "category"
        return pm.Dirichlet(name, np.array(law.concentration, np.float64), dims=(*dims, shares))
    if isinstance(law, Beta) and law.proper:
        return pm.Beta(name, np.float64(law.a), np.float64(law.b), dims=dims)
    if isinstance(law, Beta):
        number = pm.Uniform(name, 0.0, 1.0, dims=dims)
        density = (law.a - 1.0) * pt.log(number) + (law.b - 1.0) * pt.log1p(-number)
        pm.Potential(f"improper_{name}_prior", density)
        return number
    if isinstance(law, StudentT):
        return pm.StudentT(name, nu=law.df, sigma=law.scale, dims=dims)
    kind = pm.HalfNormal if isinstance(law, HalfNormal) else pm.Normal
    return kind(name, sigma=law.sd, dims=dims)  # type: ignore[attr-defined]


def hyperparameters(fields: Fields, simulated: bool = False) -> dict[str, Tensor]:
    """Add the variables of all fields, by system, to the model in context.

    The two Betas of a mixture are in no order: a posteriori the order of their means tells them
    apart. Sampled in order, NUTS could not get from "nearly all questions belong to the upper Beta"
    to "nearly all belong to the lower one", which without order is one region. So the share is that
    of the first Beta, with the prior of the lower one's; to simulate, the lower one's is drawn.

    Parameters
    ----------
    fields : Fields
    simulated : bool
        Whether the prior must be drawn from, so that no potential may be part of it.
    """
    drawn = {field.name: variable(field) for field in fields if field.name != "share"}
    if not fields.pairs:
        return drawn
    (law,) = (field.distribution for field in fields if field.name == "share")
    assert isinstance(law, Beta)
    first_lower = drawn["mean"][:, 0] < drawn["mean"][:, 1]
    if simulated:
        lower = variable(Field("lower_share", law))
        first = pt.switch(first_lower, lower, 1.0 - lower)
        return drawn | {"share": pm.Deterministic("share", first, dims="system")}
    share = variable(Field("share", Beta(1.0, 1.0)))
    if (law.a, law.b) != (1.0, 1.0):
        lower = _inside(pt.switch(first_lower, share, 1.0 - share))
        density = pm.logp(pm.Beta.dist(np.float64(law.a), np.float64(law.b)), lower)
        pm.Potential("share_prior", density)
    return drawn | {"share": share}


def all_trials(study: Study) -> Array:
    """Trials (system, question, category), with those before at their weight."""
    counts = study.counts.astype(float)
    return counts if study.prior_by_kind is None else counts + study.prior_by_kind


@dataclass(frozen=True)
class Questions:
    """Questions of systems, distinct or all of them.

    Parameters
    ----------
    counts : ndarray, shape (questions, categories)
        Trials, with those before at their weight.
    repeats : ndarray, shape (questions,)
        How many questions are like this one.
    system, group : ndarray of int, shape (questions,)
    rows : ndarray, shape (questions, directions)
        Covariates in their basis, without the constant.
    """

    counts: Array
    repeats: Array
    system: Indices
    group: Indices
    rows: Array

    @classmethod
    def of(cls, study: Study, distinct: bool = True) -> "Questions":
        """Return the questions of the data, system by system."""
        counts = all_trials(study)
        systems, questions, categories = counts.shape
        group = np.zeros(questions) if study.grouping is None else study.grouping.code
        rows = np.zeros((questions, 0))
        if study.design is not None:
            rows = study.design.basis.rows[:, 1:]
        system = np.repeat(np.arange(systems), questions)
        shared = np.tile(np.column_stack([group, rows]), (systems, 1))
        table = np.column_stack([system, counts.reshape(-1, categories), shared])
        repeats = np.ones(len(table))
        if distinct:
            table, number = np.unique(table, axis=0, return_counts=True)
            repeats = number.astype(float)
        first, counts, group, rows = np.split(table, [1, categories + 1, categories + 2], axis=1)
        owner, code = (column[:, 0].astype(np.intp) for column in (first, group))
        return cls(counts, repeats, owner, code, rows)

    @property
    def labelled(self) -> Array:
        """Wrong and right trials of known truth, beside the marks of the others; (questions, 2)."""
        kinds = self.counts[:, 2:]
        columns = kinds[:, :3].sum(axis=1), kinds[:, 3:].sum(axis=1)
        return np.stack(columns, axis=1)

    def containers(self) -> "Questions":
        """Return counts and systems in containers of the model in context, to be exchanged."""
        held = {
            name: pm.Data(f"state_{name}", getattr(self, name))
            for name in ("counts", "repeats", "system")
        }
        return replace(self, **held)


class Law:
    """The distribution of probabilities of questions, as PyMC variables by system.

    Parameters
    ----------
    study : Study
        With partial pooling.
    family : str
        Difficulty family, of right and wrong.
    simulated : bool
        Whether the prior must be drawn from.
    """

    def __init__(self, study: Study, family: str, simulated: bool = False) -> None:
        self.drawn = hyperparameters(declared_fields(study, family), simulated)
        self.scored = isinstance(study.prior, DirichletHyperPrior)
        self.scores = np.array(study.scale.scores if self.scored else (0.0, 1.0))
        self.levels, self.log_base = None, None
        self.systems = len(study.outcomes.systems)
        if study.scale.axes and not self.scored:
            self.levels = study.scale.scores
            functions = shape_functions(self.levels)
            self.log_base = pt.zeros((self.systems, len(self.levels)))
            if len(functions):
                self.log_base = self.drawn["shape"] @ functions
        trials = all_trials(study).sum(axis=-1)
        self.trials = float(trials.max(initial=1.0))
        self.effect = None
        if study.grouping is not None:
            standard = pm.Normal("group_effect", dims=("system", "group"))
            self.effect = self.drawn["group_sd"][:, None] * standard

    def offsets(self, questions: Questions) -> Tensor | None:
        """Offsets of questions in logits; None where there is no structure."""
        total = None
        if "slopes" in self.drawn:
            total = (self.drawn["slopes"][questions.system] * questions.rows).sum(axis=-1)
        if self.effect is not None:
            effect = self.effect[questions.system, questions.group]
            total = effect if total is None else total + effect
        return total

    def counted(self, questions: Questions) -> "Mixed | MixedLevels":
        """Return the distributions of what is counted of questions."""
        if self.levels is None:
            return self.mixed(questions)
        row, base = None, questions.system
        if self.offsets(questions) is None:  # all questions of a system are alike
            row, base = questions.system, np.arange(self.systems)
            questions = replace(questions, system=base)
        mixed = self.mixed(questions)
        return MixedLevels(
            mixed.parts, mixed.log_atoms, self.log_base, base, row, self.levels, self.trials
        )

    def mixed(self, questions: Questions) -> "Mixed":
        """Return the distributions of the probabilities of questions."""
        system, offset = questions.system, self.offsets(questions)
        mean, icc = self.drawn["mean"], self.drawn["icc"]
        if "share" in self.drawn:
            share = _inside(self.drawn["share"])
            logs = pt.log(share)[system], pt.log1p(-share)[system]
            pairs = [self._alpha(mean[:, j], icc[:, j], system, offset) for j in range(2)]
            return Mixed(list(zip(pairs, logs, strict=True)))
        alpha = self._alpha(mean, icc, system, offset)
        if "atoms" not in self.drawn:
            return Mixed([(alpha, 0.0)])
        shares = pt.log(pt.maximum(self.drawn["atoms"], _NEAR))
        never, always, between = (shares[:, i][system] for i in range(3))
        return Mixed([(alpha, between)], (never, always))

    def _alpha(self, mean: Tensor, icc: Tensor, system: Tensor, offset: Tensor | None) -> Tensor:
        """Dirichlet parameters of questions, (questions, categories), from those of systems."""
        total = parameter_sum(icc)[:, None]
        vector = mean if self.scored else pt.stack([1.0 - mean, mean], axis=-1)
        if offset is None:
            return pt.maximum(vector * total, _LEAST)[system]
        spread = (self.scores - self.scores[0]) / (self.scores[-1] - self.scores[0])
        tilted = pt.special.softmax(pt.log(vector)[system] + offset[:, None] * spread, axis=-1)
        return pt.maximum(tilted * total[system], _LEAST)


@dataclass(frozen=True)
class Mixed:
    """Mixtures of Dirichlet distributions and of atoms, one for each of some questions.

    Parameters
    ----------
    parts : list of (alpha, log share)
        Of shapes (questions, categories) and (questions,); the log share of a single one is 0.
    log_atoms : sequence of tensor, shape (questions,)
        Log shares of p = 0 and p = 1; empty without atoms.
    """

    parts: Sequence[tuple[Tensor, Tensor | float]]
    log_atoms: Sequence[Tensor] = ()

    def log_counts(self, counts: Tensor) -> Tensor:
        """Log probability of trials in their order, probabilities integrated.

        Parameters
        ----------
        counts : tensor, shape (questions, [alternatives], categories)
        """
        more = (None,) * (counts.ndim - 2)
        wide = (slice(None), *more)
        terms = []
        for alpha, log_share in self.parts:
            rise = log_rising(alpha[wide], counts).sum(axis=-1)
            rise -= log_rising(alpha.sum(axis=-1)[wide], counts.sum(axis=-1))
            terms.append(rise + (log_share if isinstance(log_share, float) else log_share[wide]))
        total = terms[0] if len(terms) == 1 else pt.logaddexp(*terms)
        for log_share, absent in zip(self.log_atoms, (-1, 0), strict=False):
            explained = pt.eq(counts[..., absent], 0.0)
            total = pt.switch(explained, pt.logaddexp(total, log_share[wide]), total)
        return total


@dataclass(frozen=True)
class Known:
    """Logs of 1 - p and of p, one of each for some questions."""

    log_q: Tensor
    log_p: Tensor

    def log_counts(self, counts: Tensor) -> Tensor:
        """Log probability of trials in their order; (questions, alternatives)."""
        return counts[..., 0] * self.log_q[:, None] + counts[..., 1] * self.log_p[:, None]


def build_program(
    study: Study, family: str = "", form: Form = "marginal", distinct: bool = True
) -> pm.Model:
    """Return the PyMC model of what was asked for.

    Parameters
    ----------
    study : Study
    family : str
        Difficulty family, of right and wrong under partial pooling.
    form : {"marginal", "full"}
        Without pooling and with complete pooling there is the full form alone.
    distinct : bool
        Whether the marginal form has distinct questions only. Else counts can be exchanged even
        where questions have groups or covariates.
    """
    with pm.Model(coords=study_coordinates(study)) as model:
        rates = None if study.judge_rates is None else mark_rates(study.judge_rates)
        if study.pooling != "partial":
            _unpooled(study, rates)
        elif form == "full":
            law = Law(study, family, simulated=True)
            p = question_probabilities(study, law)
            observe(study.outcomes, study.scale, p, rates, study.prior_counts)
        else:
            _marginal(study, Law(study, family), rates, distinct)
    return model


def coordinates(outcomes: Outcomes, *more: str) -> dict[str, Any]:
    """Return the labels of systems and questions, and of other dimensions of the data."""
    return {name: outcomes.dataset[name].values.tolist() for name in ("system", "question", *more)}


def study_coordinates(study: Study) -> dict[str, Any]:
    """Return the labels of all dimensions of a model."""
    coords = coordinates(study.outcomes, "category") | {"component": COMPONENTS, "kind": KINDS}
    if study.grouping is not None:
        coords["group"] = study.grouping.labels
    if study.scale.axes and isinstance(study.prior, HyperPrior):
        coords["function"] = np.arange(len(shape_functions(study.scale.scores)))
    if study.design is not None:
        coords["direction"] = np.arange(1, len(study.design.coefficients))
    return coords


def _marginal(study: Study, law: Law, rates: Rates | None, distinct: bool) -> None:
    """Add the likelihood of distinct questions, probabilities integrated."""
    questions = Questions.of(study, distinct)
    held = questions.containers()
    mixed = law.mixed(held)
    if rates is None:
        logs = law.counted(held).log_counts(held.counts)
    elif (questions.counts == np.round(questions.counts)).all():
        logs = _log_marks(questions, mixed, rates)
    else:
        logs = _log_fractions(questions, mixed, rates)
    pm.Potential("log_likelihood", held.repeats * logs)


def _log_marks(questions: Questions, mixed: "Mixed | Known", rates: Rates) -> Tensor:
    """Log probability of marks in their order: the numbers of right trials are added up."""
    wrong, marks = questions.counts[:, :2].T.astype(int)
    labelled = questions.labelled
    right = right_trials(wrong + marks)
    alternatives = np.stack([(wrong + marks)[:, None] - right, right], axis=-1).astype(float)
    log_right = mixed.log_counts(pt.as_tensor_variable(alternatives + labelled[:, None]))
    by_count, labels = rates.of(questions.system), questions.counts[:, 2:]
    if not labelled.any():
        return log_marks(marks, wrong + marks, log_right, by_count)
    logs = log_marks(marks, wrong + marks, log_right, by_count, labels)
    return logs + log_labels(labels, by_count)


def _log_fractions(questions: Questions, mixed: Mixed, rates: Rates) -> Tensor:
    """Log probability of fractions of marked trials: an integral over p for every Beta."""
    by_count = rates.of(questions.system)
    wrong, right = questions.counts[:, :2].T[:, :, None]
    p, q, logs = logit_nodes(mixed.parts, mixed.log_atoms, pt)
    for_right, for_wrong = (rate[:, None] * p + other[:, None] * q
                            for rate, other in ((by_count.s, by_count.f),
                                                (1.0 - by_count.s, 1.0 - by_count.f)))  # fmt: skip
    logs = logs + right * pt.log(for_right) + wrong * pt.log(for_wrong)
    labelled = questions.labelled
    if not labelled.any():
        return pt.logsumexp(logs, axis=1)
    for count, chance in zip(labelled.T[:, :, None], (q, p), strict=True):
        logs = logs + pt.switch(count > 0.0, count * pt.log(chance), 0.0)
    return pt.logsumexp(logs, axis=1) + log_labels(questions.counts[:, 2:], by_count)


def question_probabilities(study: Study, law: Law) -> Tensor:
    """Add the probabilities of all questions; which Beta or atom they are of is drawn, too."""
    mixed = law.mixed(Questions.of(study, distinct=False))
    sizes = study.outcomes.trials.shape

    def by_question(values: Tensor) -> Tensor:
        return values.reshape((*sizes, *([values.shape[-1]] if values.ndim > 1 else [])))

    alphas = [by_question(alpha) for alpha, _ in mixed.parts]
    dims = ("system", "question")
    if law.scored:
        return pm.Dirichlet("p", alphas[0], dims=(*dims, "category"))
    if law.levels is not None:
        p = _drawn("expected_score", mixed, alphas, by_question, sizes)
        vector = level_vectors(p, law.log_base, law.levels)
        return pm.Deterministic("p", vector, dims=(*dims, "category"))
    return _drawn("p", mixed, alphas, by_question, sizes)


def _drawn(
    name: str, mixed: "Mixed", alphas: Sequence[Tensor], by_question: Callable[[Tensor], Tensor],
    sizes: tuple[int, ...],
) -> Tensor:  # fmt: skip
    """Add a probability of every question that is of one of several Betas, or an atom."""
    dims = ("system", "question")
    if len(alphas) == 1 and not mixed.log_atoms:
        return pm.Beta(name, alphas[0][..., 1], alphas[0][..., 0], dims=dims)
    logs = [*(log_share for _, log_share in mixed.parts), *mixed.log_atoms]
    values = [
        pm.Beta(f"{name}_{COMPONENTS[j]}", alpha[..., 1], alpha[..., 0], dims=dims)
        for j, alpha in enumerate(alphas)
    ]
    values += [pt.zeros(sizes), pt.ones(sizes)][: len(mixed.log_atoms)]
    shares = pt.special.softmax(by_question(pt.stack(logs, axis=-1)), axis=-1)
    number = pm.Categorical("which", shares, dims=dims)
    p = sum(pt.eq(number, j) * value for j, value in enumerate(values))
    return pm.Deterministic(name, p, dims=dims)


def _unpooled(study: Study, rates: Rates | None) -> None:
    """Add probabilities with a fixed prior: of every question, or one for all of a system."""
    axes, sizes = study.scale.axes, study.outcomes.trials.shape
    # Earlier trials that no judge marked add up with the prior.
    alpha = np.stack([concentration(study, system) for system in range(sizes[0])], dtype=float)
    together = study.pooling == "complete"
    dims: tuple[str, ...] = ("system", *axes) if together else ("system", "question", *axes)
    name = "mean_p" if together else "p"
    if axes:
        p = pm.Dirichlet(name, alpha, dims=dims)
    else:
        p = pm.Beta(name, alpha[..., 1], alpha[..., 0], dims=dims)
    if together:
        repeated = p[:, None] + pt.zeros((*sizes, alpha.shape[-1]) if axes else sizes)
        p = pm.Deterministic("p", repeated, dims=("system", "question", *axes))
    if rates is not None and rates.total is not None:  # those of a question integrated, too
        questions = Questions.of(study, distinct=False)
        known = (pt.log1p(-p).ravel(), pt.log(p).ravel())
        pm.Potential("log_likelihood", _log_marks(questions, Known(*known), rates))
        return
    before = None if rates is None else study.prior_counts
    observe(study.outcomes, study.scale, p, rates, before)


def observe(
    outcomes: Outcomes,
    scale: Scale,
    p: Tensor,
    rates: Rates | None = None,
    before: Array | None = None,
) -> None:
    """Add the counts given the probabilities, and earlier trials at their weight.

    Where the truth of some trials is known, ``successes`` are marks of the others.
    """
    dims = ("system", "question")
    counts, sizes = scale.observed(outcomes).values, outcomes.trials.values
    if rates is not None:
        kinds, (s, f) = outcomes.kinds, rates.by_question()
        counts, sizes = kinds[..., 1], kinds[..., :2].sum(axis=-1)
        if kinds.shape[-1] > 2:
            pm.Potential("known_truth", _log_known(kinds, p, s, f))
    trials = pm.Data("trials", sizes, dims=dims)
    if scale.axes:
        observed = pm.Data("count_data", counts, dims=(*dims, "category"))
        pm.Multinomial("count", n=trials, p=p, observed=observed, dims=(*dims, "category"))
        logs = pt.log(p)
    else:
        if rates is not None:
            p = f + (s - f) * p
        observed = pm.Data("successes_data", counts, dims=dims)
        pm.Binomial("successes", n=trials, p=p, observed=observed, dims=dims)
        logs = pt.stack([pt.log1p(-p), pt.log(p)], axis=-1)
    if before is not None and before.any():
        counted = pt.switch(before > 0.0, before * logs, 0.0)
        pm.Potential("prior_trials", counted.sum(axis=(1, 2)))


def _log_known(kinds: Ints, p: Tensor, s: Tensor, f: Tensor) -> Tensor:
    """Log probability of trials of known truth, and of their marks; (systems, questions)."""
    systems, questions, _ = kinds.shape
    labelled = kinds[..., 2:].reshape(systems, questions, 2, 3).sum(axis=-1)
    logs = labelled[..., 0] * pt.log1p(-p) + labelled[..., 1] * pt.log(p)
    by_question = Rates(*((rate + pt.zeros_like(p)).ravel() for rate in (s, f)))
    labels = log_labels(kinds[..., 2:].reshape(-1, 6), by_question)
    return logs + labels.reshape((systems, questions))


def _inside(share: Tensor) -> Tensor:
    return pt.clip(share, _NEAR, 1.0 - _NEAR)


def parameter_sum(icc: Tensor) -> Tensor:
    """Sum of the parameters of a Beta or Dirichlet with an intraclass correlation."""
    inside = _inside(icc)
    return (1.0 - inside) / inside

"""What calibration draws from: counts, votes and costs, each a declared PyMC program.

Truth and data are one forward draw of the program in the form that has probabilities and trials as
variables, compiled once (`bayesatk.models.forward`). What is asked of the truth is computed as it
is of draws of NUTS: the truth is a posterior of one draw.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Array, Ints, Rng
from bayesatk.core.costs.prior import CostPrior, Costs
from bayesatk.costs.evaluation import draw_costs, fit_costs
from bayesatk.data.answers import Ballots
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.study import Study
from bayesatk.data.tally import tally
from bayesatk.metrics.grid import Metric
from bayesatk.models.building import build_models, default_form
from bayesatk.models.costs import cost_draws, cost_program
from bayesatk.models.evidence import average
from bayesatk.models.forward import Forward
from bayesatk.models.metric_draws import count_draws
from bayesatk.models.program import Form, build_program
from bayesatk.models.question_draws import traced_difficulty
from bayesatk.models.sampling import Sampling, with_data_of
from bayesatk.models.systems import build_logit_normal
from bayesatk.models.votes import answer_draws as sampled_votes
from bayesatk.models.votes import (
    build_answers,
    latent_votes,
    possible_ballots,
    simulated_credit,
)
from bayesatk.posterior.answers import VoteModel, answer_draws
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.models_of import Declared
from bayesatk.posterior.pooled_answers import WRONG, PooledVotes
from bayesatk.priors import AnswerHyperPrior, AnswerPrior, CrossedPrior, HyperPrior
from bayesatk.results.costs import read_costs
from bayesatk.results.difficulty import flat_draws
from bayesatk.results.schema import GROUPED_TARGETS, TARGETS

Quantities = dict[str, Array]
PyMCForm = Form | Literal["logit_normal"]
Structure = Literal["covariates", "groups"]
DRAWS = 199
_THIN, _CHAINS = 5, 2  # of NUTS, until draws are all but independent
_GROUP = 4  # questions
_NUTS = Sampling(
    draws=_THIN * (DRAWS + 1) // _CHAINS, tune=1000, chains=_CHAINS, options={"cores": 1}
)
_STICKS, _PIECES = 200, 50  # wrong answers of a question; and of the rest that all differ
NEW = 2000  # questions whose votes stand for those of all questions like these
_COSTS = ("mean_cost", "cost_of_pass", "cost_if_right", "pass_at_k", "cost_to_success")


class CountKind:
    """Marks or scores of one system, or of two whose difficulties are correlated.

    Parameters
    ----------
    study : Study
        With data of the right size.
    form : PyMCForm, optional
        Of the model that NUTS samples.
    """

    def __init__(self, study: Study, form: PyMCForm | None) -> None:
        self.study, self.form = study, form or default_form(study.pooling)
        self._forward: dict[str, Forward] = {}
        self._programs: dict[str, Any] = {}

    def forward(self, rng: Rng) -> tuple[str, xr.Dataset]:
        """Draw a family, and hyperparameters, probabilities and counts."""
        study, family = self.study, _drawn_family(self.study.prior, rng)
        if family not in self._forward:
            normal = isinstance(study.prior, CrossedPrior)
            model = self._models(study)[""] if normal else build_program(study, family, "full")
            self._forward[family] = Forward(model)
        return family, self._forward[family].draw(rng)

    def simulate(self, rng: Rng) -> tuple[Quantities, Any]:
        """Draw a family, hyperparameters, probabilities and counts."""
        study, family, drawn = self.study, *self.forward(rng)
        truth = self.quantities(study, {family: drawn}, rng)
        values = drawn[study.scale.variable].isel(chain=0, draw=0).values
        counts = study.scale.by_category(values, study.outcomes.trials.values)
        dataset = study.outcomes.dataset
        dataset = dataset.assign(count=(("system", "question", "category"), counts))
        return truth, replace(study, outcomes=replace(study.outcomes, dataset=dataset))

    def exact(self, data: Study, rng: Rng) -> Quantities:
        """Draw from the closed form."""
        if isinstance(data.prior, CrossedPrior):
            raise ValueError("engine must be 'pymc' for logit-normal difficulties: no closed form.")
        seed = int(rng.integers(2**31)) if data.judges else 0
        model = Declared.of_study(data, seed).model(0)
        drawn = model.fit([data.scale.judged(metric) for metric in data.metrics]).draw(
            DRAWS, rng, True
        )
        variables: dict[str, Any] = {**drawn.hyper}
        if drawn.p is not None:
            variables["p"] = drawn.p
        if drawn.groups is not None:
            variables["group_mean"] = drawn.groups.mean
        by_system = {name: values[:, None] for name, values in variables.items()}
        return self._named(data.metrics, drawn.metrics[:, None], by_system)

    def sampled(self, data: Study, rng: Rng) -> Quantities:
        """Draw with NUTS from the models of the form."""
        posteriors = {
            family: _nuts_draws(model, self._programs, family, rng)
            for family, model in self._models(data).items()
        }
        return _thinned(self.quantities(data, posteriors, rng))

    def _models(self, study: Study) -> Mapping[str, Any]:
        """Return the models that NUTS samples, by family."""
        prior = study.prior
        if self.form == "logit_normal":
            assert isinstance(prior, CrossedPrior)
            return {"": build_logit_normal(
                study.outcomes, mu_sd=prior.mu_sd, sigma_sd=prior.sigma_sd
            )}  # fmt: skip
        structured = study.grouping is not None or study.design is not None
        return build_models(study, self.form, distinct=not structured)

    def quantities(
        self, study: Study, posteriors: Mapping[str, xr.Dataset], rng: Rng
    ) -> Quantities:
        """Name what draws of every family say of the data; chains one after the other."""
        difficulties = None
        if isinstance(study.prior, HyperPrior):
            difficulties = average(study, posteriors, rng).difficulties
        source = next(iter(posteriors.values()))
        drawn = count_draws(study, source, True, rng, difficulties)

        def flat(values: Array) -> Array:
            return values.reshape(-1, *values.shape[2:])

        variables = {name: flat(values) for name, (_, values) in drawn.variables.items()}
        return self._named(list(study.grid), flat(drawn.values), variables)

    def _named(
        self, metrics: Sequence[Metric], values: Array, variables: Mapping[str, Array]
    ) -> Quantities:
        """Name draws: of metrics asked for, every hyperparameter, and the first p and group.

        Parameters
        ----------
        metrics : sequence of Metric
        values : ndarray, shape (draws, systems, metrics, target)
        variables : mapping of ndarray, shape (draws, systems, ...)
        """
        study = self.study
        quantities: Quantities = {}
        for name, by_system in variables.items():
            quantities |= self.of_variable(name, by_system[:, 0])
        labels = [metric.label for metric in metrics]
        for metric in study.metrics:
            by_target = np.moveaxis(values[:, :, labels.index(metric.label)], -1, 0)
            for target, drawn in zip(GROUPED_TARGETS, by_target, strict=False):
                if target == "population" and study.bootstrapped:
                    continue  # by the Bayesian bootstrap, which is no model to simulate
                quantities[f"{metric.label} {target}"] = drawn[:, 0]
                if drawn.shape[1] == 2:
                    difference = drawn[:, 0] - drawn[:, 1]
                    quantities[f"{metric.label} {target} difference"] = difference
        return quantities

    def of_variable(self, name: str, drawn: Array) -> Quantities:
        """Name draws (draws, ...) of a variable of the first system; none of a large one."""
        scale, design = self.study.scale, self.study.design
        if drawn.ndim == 1:
            return {name: drawn}
        if name == "p":
            return {f"{scale.rated}_first": scale.rate(drawn[:, 0])}
        if name == "coefficients" and design is not None:
            return dict(zip(design.coefficients, drawn.T, strict=True))
        columns = {
            "mean_p": {"mean_p lowest": 0, "mean_p highest": -1},
            "group_mean": {"group_mean_first": 0}, "correlation": {"correlation": 1},
        }  # fmt: skip
        return {label: drawn[:, column] for label, column in columns.get(name, {}).items()}


class VoteKind:
    """Votes of one system on questions of which every one has the same number of answers.

    The first answer is right.
    """

    def __init__(
        self, questions: int, trials: int, metrics: Sequence[Metric], prior: AnswerPrior
    ) -> None:
        self.metrics, self.prior, self.trials = metrics, prior, trials
        self.ks = [metric.k for metric in metrics]
        once = np.eye(1, prior.choices, dtype=np.int64)
        self.template = _answers(once.repeat(questions, axis=0))
        self._programs: dict[str, Any] = {}

    @cached_property
    def _forward(self) -> Forward:
        return Forward(build_answers(self.template, self.prior))

    def simulate(self, rng: Rng) -> tuple[Quantities, Any]:
        """Draw probabilities of the answers, and answers."""
        drawn = self._forward.draw(rng)
        p = drawn["answer_p"].values.reshape(len(self.template.dataset["question"]), -1)
        return self._quantities(self.template, drawn, rng), _answers(
            rng.multinomial(self.trials, p)
        )

    def exact(self, data: Outcomes, rng: Rng) -> Quantities:
        """Draw from the closed form."""
        assert data.answers is not None
        ballots = data.answers.of(0)
        posterior = VoteModel(ballots, self.prior, DRAWS, rng).fit(self.metrics)
        together = posterior.draw(DRAWS, rng, False).metrics[:, :, 0]
        first = answer_draws(ballots[:1], self.ks, self.prior, DRAWS, rng)[:, 0]
        return self._named(together, first)

    def sampled(self, data: Outcomes, rng: Rng) -> Quantities:
        """Draw with NUTS."""
        drawn = _nuts_draws(build_answers(data, self.prior), self._programs, "", rng)
        return _thinned(self._quantities(data, drawn, rng))

    def _quantities(self, outcomes: Outcomes, posterior: xr.Dataset, rng: Rng) -> Quantities:
        together = sampled_votes(outcomes, self.prior, self.ks, posterior, rng).values
        correct = possible_ballots(outcomes, self.prior)[0].correct
        p = flat_draws(posterior["answer_p"])[:, : len(correct)]
        first = latent_votes(p, correct, self.ks)
        return self._named(together[:, :, 0, :, 0].reshape(first.shape), first)

    def _named(self, together: Array, first: Array) -> Quantities:
        quantities: Quantities = {}
        for metric, on_all, on_first in zip(self.metrics, together.T, first.T, strict=True):
            quantities |= {f"{metric.label} questions": on_all, f"{metric.label} first": on_first}
        return quantities


class PooledVoteKind:
    """Votes of one system whose questions share a law of right answers and an agreement.

    A share of a wrong answer is a stick broken off what is left (Sethuraman 1994), so the truth
    shares neither Ewens' formula nor elections with the posterior. Questions like these are many
    more questions of the same program, with a vote each.

    Parameters
    ----------
    marks : CountKind
        Right and wrong; of the questions, and of those like them.
    questions : int
    metrics : sequence of Metric
    """

    def __init__(self, marks: CountKind, questions: int, metrics: Sequence[Metric]) -> None:
        self.marks, self.questions, self.metrics = marks, questions, metrics
        self.ks, self.prior = [metric.k for metric in metrics], AnswerHyperPrior()

    def simulate(self, rng: Rng) -> tuple[Quantities, Any]:
        """Draw a family, hyperparameters, shares of answers and votes, and answers."""
        study, family, drawn = self.marks.study, *self.marks.forward(rng)
        truth = self.marks.quantities(study, {family: drawn}, rng)
        p = drawn["p"].values.reshape(-1, 1)
        agreement = rng.beta(*self.prior.agreement)
        broken = rng.beta(1.0, (1.0 - agreement) / agreement, (len(p), _STICKS))
        left = np.cumprod(1.0 - broken, axis=1)
        wrong = broken * np.column_stack([np.ones(len(p)), left[:, :-1]])
        dust = np.repeat(left[:, -1:] / _PIECES, _PIECES, axis=1)
        shares = np.concatenate([p, (1.0 - p) * wrong, (1.0 - p) * dust], axis=1)
        correct = np.arange(shares.shape[1]) == 0
        these, like = shares[: self.questions], shares[self.questions :]
        on_these = latent_votes(these, correct, self.ks).mean(axis=0)
        on_like = simulated_credit(like, correct, self.ks, rng).mean(axis=0)
        truth = {name: value for name, value in truth.items() if "@" not in name}
        truth[WRONG] = np.array([agreement])
        truth |= self._named(np.stack([on_these, on_like], axis=1)[None])
        trials = int(study.outcomes.trials.values[0, 0])
        counts = [rng.multinomial(trials, row / row.sum()) for row in these]
        return truth, [Ballots(row, correct, None) for row in counts]

    def exact(self, data: list[Ballots], rng: Rng) -> Quantities:
        """Draw from the closed form."""
        counts = np.array([[ballot.count[1:].sum(), ballot.count[0]] for ballot in data])
        prior = self.marks.study.prior
        assert isinstance(prior, HyperPrior)  # of partial pooling
        model = CountModel.of(prior, counts)
        votes = PooledVotes(data, model, None, self.prior, False, rng)
        drawn = votes.draw(self.metrics, DRAWS, rng).drawn
        assert drawn.p is not None  # votes are made of it
        quantities = self._named(drawn.metrics)
        for name, values in (drawn.hyper | {"p": drawn.p}).items():
            quantities |= self.marks.of_variable(name, values)
        return quantities

    def sampled(self, data: list[Ballots], rng: Rng) -> Quantities:
        """Refuse: `calibrate` does before."""
        raise NotImplementedError("pooled votes are calibrated with engine='closed_form'.")

    def _named(self, values: Array) -> Quantities:
        """Name draws (draws, ks, targets)."""
        return {
            f"{metric.label} {target}": values[:, column, place]
            for column, metric in enumerate(self.metrics)
            for place, target in enumerate(TARGETS)
        }


class CostKind:
    """Success and cost of one system, whose every trial has a cost; at the largest k."""

    def __init__(
        self, questions: int, trials: int, metrics: Sequence[Metric], prior: HyperPrior,
        cost_prior: CostPrior,
    ) -> None:  # fmt: skip
        ones = np.ones((questions, trials), int)
        self.asked = read_costs(
            tally(ones, cost=ones.astype(float)), max(metric.k for metric in metrics), (),
            prior=prior, difficulty=None, cost_prior=replace(cost_prior, scale=1.0), success=None,
            ci_prob=0.95,
        )  # fmt: skip
        self.trials = trials
        self._forward: dict[str, Forward] = {}

    def simulate(self, rng: Rng) -> tuple[Quantities, Any]:
        """Draw a family, parameters, questions, outcomes and costs."""
        family = _drawn_family(self.asked.prior, rng)
        if family not in self._forward:
            self._forward[family] = Forward(cost_program(self.asked, family, self.trials))
        drawn = self._forward[family].draw(rng)
        difficulty = traced_difficulty(drawn, 0)
        assert difficulty is not None
        truth = cost_draws(self.asked, drawn, 0, 0) | {"mean_p": difficulty.overall[0]}
        right, cost = (drawn[name].values[0, 0, 0] for name in ("right", "trial_cost"))
        outcomes = right == 0, right == 1
        return _of_costs(truth), Costs(
            np.stack([outcome.sum(axis=1) for outcome in outcomes], axis=1).astype(float),
            np.stack([(cost * outcome).sum(axis=1) for outcome in outcomes], axis=1),
            np.array([np.log(cost[outcome]).sum() for outcome in outcomes]),
        )

    def exact(self, data: Costs, rng: Rng) -> Quantities:
        """Draw from the posterior without a sampler."""
        asked, ones = self.asked, self.asked.weight
        model, points = fit_costs(data.trials.astype(np.int64), data, asked.prior, asked.cost_prior)
        return _of_costs(draw_costs(
            model, points, DRAWS, 1.0, ones, lambda draws: np.ones((draws, len(ones))),
            list(asked.k), (), rng,
        ))  # fmt: skip

    def sampled(self, data: Costs, rng: Rng) -> Quantities:
        """Refuse: a model with two latent numbers a question is sampled one data set at a time."""
        raise NotImplementedError("costs are calibrated with engine='closed_form'.")


# Each draws truth and data, and a posterior of the data.
Kind = CountKind | VoteKind | PooledVoteKind | CostKind


def count_study(
    questions: int, trials: int, structure: Structure | None, systems: int,
    scores: tuple[float, ...] | None, **asked: Any,
) -> Study:  # fmt: skip
    """Return a study of the right size, whose data are to be drawn.

    Questions are in groups of four; or their success depends on a trend and on a kind, of which
    every third one is.
    """
    number = np.arange(questions)
    columns: dict[str, Any] = {}
    if structure == "groups":
        columns["group"] = (number // _GROUP).tolist()
        asked["group_weights"] = "questions"
    if structure == "covariates":
        third = (number % 3 == 0).astype(float)
        trend = number.astype(float)
        columns["covariates"] = {"trend": trend.tolist(), "third": third.tolist()}
        asked["covariates"] = ("trend", "third")
    counts = np.zeros((systems, questions, len(scores or (0.0, 1.0))), int)
    counts[..., 0] = trials
    if scores is None:
        outcomes = tally((counts[..., 1], counts.sum(axis=2)), **columns)
    else:
        outcomes = tally(xr.Dataset(
            {"count": (("system", "question", "category"), counts)},
            coords={"score": ("category", list(scores))},
        ))  # fmt: skip
    return Study(outcomes=outcomes, **asked)


def _drawn_family(prior: object, rng: Rng) -> str:
    """Draw a family by its prior probability; empty where the prior has none."""
    if not isinstance(prior, HyperPrior):
        return ""
    names, chances = zip(*prior.family_prior.items(), strict=True)
    return str(rng.choice(names, p=chances))


def _nuts_draws(model: Any, programs: dict[str, Any], family: str, rng: Rng) -> xr.Dataset:
    """Sample a model with NUTS; its program is compiled once, and takes other data."""
    import nutpie

    if family not in programs:
        programs[family] = nutpie.compile_pymc_model(model)
    program = partial(with_data_of, programs[family])
    trace = _NUTS.run(model, int(rng.integers(2**31)), program)
    posterior: xr.Dataset = trace["posterior"].to_dataset()
    return posterior


def _thinned(quantities: Quantities) -> Quantities:
    """Draws so far apart that they are all but independent."""
    return {name: drawn[: _THIN * DRAWS : _THIN] for name, drawn in quantities.items()}


def _of_costs(drawn: Quantities) -> Quantities:
    """Parameters, and quantities of these questions at the first k."""
    parameters = {name: values for name, values in drawn.items() if values.ndim == 1}
    return parameters | {
        f"{name} questions": drawn[name].reshape(len(drawn[name]), -1, 2)[:, 0, 0]
        for name in _COSTS
    }


def _answers(counts: Ints) -> Outcomes:
    """Answers "0", "1" ... of so many trials each, of which "0" is right."""
    rows = [np.repeat(np.arange(len(row)), row).astype(str).tolist() for row in counts]
    return tally(None, answers=rows, reference=["0"] * len(rows))

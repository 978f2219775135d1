"""Groups of a sampled result that PyMC works out: likelihoods, replicated counts and priors.

Log-likelihoods are of a question's counts with its own p integrated, and replicates are of new
questions: models without p of the questions, and without their earlier trials and known truth, take
the place of those that were sampled.
"""

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from numpy.typing import NDArray
from pymc.stats import compute_log_likelihood, compute_log_prior

from bayesatk._tools.arrays import Array, Ints, Rng
from bayesatk.data.study import Study
from bayesatk.metrics.credit import log_multinomial
from bayesatk.metrics.grid import MetricGrid
from bayesatk.models.evidence import Averaged
from bayesatk.models.metric_draws import count_draws, drawn_hyperparameters, named_draws
from bayesatk.models.program import build_program
from bayesatk.models.question_draws import chosen, traced_difficulty, traced_laws
from bayesatk.priors import DIFFICULTY_FAMILIES, HyperPrior
from bayesatk.priors.fields import Beta, Dirichlet, Distribution, HalfNormal, StudentT
from bayesatk.results.checking import (
    PRIOR_DRAWS,
    UNIT,
    likelihood_kept,
    replicated,
    stored_counts,
    with_variation,
)
from bayesatk.results.question_laws import declared_fields
from bayesatk.results.schema import DRAWS, SAMPLE

# Interpreted: compiling costs more than the few thousand draws of a result.
_QUIET: dict[str, Any] = {"progressbar": False, "compile_kwargs": {"mode": "FAST_COMPILE"}}


@dataclass(frozen=True)
class Predictive:
    """What PyMC says of the models of a study, beside draws of the posterior.

    Parameters
    ----------
    study : Study
    models, traces : mapping
        By difficulty family.
    averaged : Averaged, optional
        Of several families: whose draws were taken.
    posterior : xarray.Dataset
        Group of the result.
    keep : sequence of str
        Optional contents of the result, as `bayesatk.sample` takes them.
    rng : numpy.random.Generator
    """

    study: Study
    models: Mapping[str, pm.Model]
    traces: Mapping[str, xr.DataTree]
    averaged: Averaged | None
    posterior: xr.Dataset
    keep: Sequence[str]
    rng: Rng

    def groups(self) -> dict[str, xr.Dataset]:
        """Return log likelihood, log prior and prior, and replicated counts."""
        if not self.models:  # of votes alone
            return {}
        study, sizes = self.study, self.posterior.sizes
        draws = sizes["chain"] * sizes["draw"]
        groups = {"log_prior": self._log_prior()}
        counted = replicated(study, draws, self.keep)
        if counted:
            groups["posterior_predictive"] = self._replicates()
        if not isinstance(study.prior, HyperPrior) or study.prior.proper:
            groups |= self._prior(counted)
        logs = None
        if likelihood_kept(draws * study.outcomes.trials.size, self.keep):
            logs = self._log_likelihood()
        if logs is not None:
            values = with_variation(logs.reshape(draws, *logs.shape[2:])).reshape(logs.shape)
            dims = (*DRAWS, "question")
            groups["log_likelihood"] = self._labelled({study.scale.variable: (dims, values)})
            groups["log_likelihood"].attrs["unit"] = UNIT
        return groups

    @property
    def _judged_earlier(self) -> bool:
        """Whether a judge marked earlier trials, whose likelihood has no integral."""
        earlier = self.study.prior_counts
        return self.study.judges is not None and earlier is not None and bool(earlier.any())

    def _new_questions(self, family: str) -> pm.Model:
        """Return the model of new questions, without earlier trials and without known truth.

        Earlier trials that no judge marked are part of a prior without hyperparameters.
        """
        study = self.study
        if study.pooling == "partial" or study.judges is not None:
            study = replace(study, prior_counts=None)
        kinds = None if study.judges is None else study.scale.counts(study.outcomes)
        return build_program(study, family, kinds=kinds)

    def _of_families(
        self, work: Callable[[str], Mapping[str, Array]], family: Ints | None
    ) -> dict[str, Array]:
        """Return variables (chain, draw, system, ...) of the family of every draw and system.

        Zero where a family has not a variable that another one has.
        """
        by_family = {name: work(name) for name in self.models}
        first_family = next(iter(by_family.values()))
        if family is None or len(by_family) == 1:
            return dict(first_family)
        taken: dict[str, Array] = {}
        for name, variables in by_family.items():
            for variable, values in variables.items():
                combined = taken.setdefault(variable, np.zeros_like(values))
                rows = family.reshape(values.shape[:3]) == DIFFICULTY_FAMILIES.index(name)
                combined[rows] = values[rows]
        return taken

    @property
    def _family(self) -> Ints | None:
        return None if self.averaged is None else self.averaged.family

    def _labelled(
        self,
        variables: Mapping[str, tuple[tuple[str, ...], NDArray[Any]]],
        prior: bool = False,
        grid: MetricGrid | None = None,
    ) -> xr.Dataset:
        """Return variables with the labels of the posterior, the data, and a grid of metrics."""
        labels = {str(name): values.values for name, values in self.posterior.coords.items()}
        dataset = self.study.outcomes.dataset
        labels |= {name: dataset[name].values for name in ("question", "category")}
        labels |= {} if grid is None else grid.coords
        if prior:
            labels |= {"chain": np.zeros(1, int), "draw": np.arange(PRIOR_DRAWS)}
        used = {dim for dims, _ in variables.values() for dim in dims}
        return xr.Dataset(variables, {dim: labels[dim] for dim in used if dim in labels}, SAMPLE)

    # Counts

    def _log_likelihood(self) -> Array | None:
        """Log probability of the counts of questions; (chain, draw, system, question)."""
        study = self.study
        if self._judged_earlier:
            return None

        def logs(family: str) -> dict[str, Array]:
            model, trace = self.models[family], self.traces[family]
            if study.pooling == "none":
                model = build_program(study, family, "integrated")
            if not model.free_RVs:
                counts, chains = model.observed_RVs, self.posterior.sizes["chain"]
                (log_p,) = model.compile_fn(model.logp(vars=counts, sum=False), inputs=[])({})
                return {"": np.tile(log_p, (chains, self.posterior.sizes["draw"], 1, 1))}
            by_variable = compute_log_likelihood(
                _draws_of(trace, model), model=model, extend_inferencedata=False, **_QUIET
            )
            dims = (*DRAWS, "question")
            log_likelihoods = [
                by_draw.transpose(*dims).values for by_draw in by_variable.data_vars.values()
            ]
            return {"": np.sum(log_likelihoods, axis=0) + _log_placements(study)}

        return self._of_families(logs, self._family)[""]

    def _replicates(self) -> xr.Dataset:
        """Return counts of new questions, a set for every draw."""
        study = self.study
        name, dims = study.scale.variable, (*DRAWS, "question", *study.scale.axes)

        def drawn(family: str) -> dict[str, Array]:
            with quietly():
                replicates = pm.sample_posterior_predictive(
                    self.traces[family],
                    self._new_questions(family),
                    var_names=[name],
                    random_seed=int(self.rng.integers(2**31)),
                    **_QUIET,
                )["posterior_predictive"]
            return {name: replicates[name].transpose(*dims).values}

        counts = self._of_families(drawn, self._family)[name]
        return self._labelled({name: (dims, stored_counts(study, counts))})

    # Priors

    def _log_prior(self) -> xr.Dataset:
        """Return the log density of the prior at every draw, of the coordinates of its fields.

        These are logits of probabilities and logs of sds, as `bayesatk.priors.fields` has them. Of
        several families each has its prior expectation taken off, as in `bayesatk.evaluate`.
        """
        study = self.study
        means = ("mean_p", "typical_p", "coefficients")
        shown = {"slopes": "coefficients"}
        if study.pooling == "partial":
            shown["mean_p"] = next(name for name in means if name in self.posterior)

        def logs(family: str) -> dict[str, Array]:
            laws = {"p" if study.pooling == "none" else "mean_p": (_fixed_law_of(study), 0.0)}
            if study.pooling == "partial":
                laws = {
                    "mean_p" if field.name == "mean" else field.name: (
                        field.distribution,
                        field.expected_log_density if len(self.models) > 1 else 0.0,
                    )
                    for field in declared_fields(study, family)
                }
            trace = self.traces[family]
            densities = compute_log_prior(
                trace,
                model=self.models[family],
                var_names=list(laws),
                extend_inferencedata=False,
                **_QUIET,
            )
            log_priors: dict[str, Array] = {}
            for name, (law, expected) in laws.items():
                density = densities[name].transpose(*DRAWS, ...).values
                values = trace["posterior"][name].transpose(*DRAWS, ...).values
                density = density + _log_slope(law, values)
                dims_kept = 4 if name == "p" else 3
                density = density.sum(axis=tuple(range(dims_kept, density.ndim))) - expected
                stored_name = shown.get(name, name)
                log_priors[stored_name] = density + log_priors.get(stored_name, 0.0)
            return log_priors

        dims = (*DRAWS, "question")
        variables = self._of_families(logs, self._family)
        return self._labelled(
            {name: (dims[: logs_by.ndim], logs_by) for name, logs_by in variables.items()}
        )

    def _prior(self, counted: bool) -> dict[str, xr.Dataset]:
        """Return ``prior``, of what the posterior has, and ``prior_predictive`` where counted."""
        study, systems = self.study, range(len(self.study.outcomes.systems))
        variable, drawn, grid = study.scale.variable, {}, MetricGrid.of(study.judged)
        for name in self.models:
            with quietly():
                drawn[name] = pm.sample_prior_predictive(
                    PRIOR_DRAWS,
                    self._new_questions(name),
                    random_seed=int(self.rng.integers(2**31)),
                    compile_kwargs=_QUIET["compile_kwargs"],
                )
        priors = {name: tree["prior"].to_dataset() for name, tree in drawn.items()}
        source = next(iter(priors.values()))
        difficulties = family = None
        if isinstance(study.prior, HyperPrior):
            chances = list(study.prior.family_prior.values())
            codes = np.array([DIFFICULTY_FAMILIES.index(name) for name in priors])
            member = self.rng.choice(len(priors), (PRIOR_DRAWS, len(systems)), p=chances)
            family, difficulties = codes[member], []
            for system in systems:
                by_family = [traced_difficulty(draws, system) for draws in priors.values()]
                laws = [law for law in by_family if law is not None]
                difficulties.append(chosen(laws, member[:, system]))
        if study.pooling == "none":
            unpooled = count_draws(study, source, True, self.rng)
            variables = grid.split(unpooled.values, DRAWS, ("target",))
            variables |= {
                name: unpooled.variables[name]
                for name in unpooled.variables
                if name != "reach_probability"
            }
        else:
            by_system = [
                drawn_hyperparameters(
                    study,
                    source,
                    i,
                    traced_laws(
                        study, source, i, None if difficulties is None else difficulties[i]
                    ),
                )
                for i in systems
            ]
            variables = named_draws(study, source, by_system)
        stored_variables = {
            name: values for name, values in variables.items() if name in self.posterior
        }
        groups = {"prior": self._labelled(stored_variables, prior=True, grid=grid)}
        if counted:
            dims = (*DRAWS, "question", *study.scale.axes)
            counts = self._of_families(
                lambda name: {
                    "": drawn[name]["prior_predictive"][variable].transpose(*dims).values
                },
                family,
            )[""]
            stored = {variable: (dims, stored_counts(study, counts))}
            groups["prior_predictive"] = self._labelled(stored, prior=True)
        return groups


@contextmanager
def quietly() -> Iterator[None]:
    """Let PyMC leave out the potential of an improper prior, without saying what is drawn."""
    logger = logging.getLogger("pymc")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The effect of Potentials")
            yield
    finally:
        logger.setLevel(level)


def _log_placements(study: Study) -> Array | float:
    """Log number of ways in which trials of known truth can be placed among those of a question.

    Variables of the model are given which trials these are.
    """
    if study.judges is None:
        return 0.0
    kinds = study.outcomes.kinds
    wrong, right = kinds[..., 2:5], kinds[..., 5:]
    known_truth = np.stack([wrong.sum(axis=-1), right.sum(axis=-1)], axis=-1)
    tables = (kinds[..., :2], known_truth, wrong[..., 1:], right[..., 1:])
    return np.asarray(log_multinomial(kinds) - sum(log_multinomial(counts) for counts in tables))


def _fixed_law_of(study: Study) -> Distribution:
    """Return a distribution of the kind that p has in a prior without hyperparameters."""
    return Dirichlet((1.0, 1.0)) if study.scale.axes else Beta(1.0, 1.0)


def _log_slope(law: Distribution, values: Array) -> Array:
    """Log derivative of values of a distribution by their coordinates.

    What an improper density has beside that of a uniform number, which PyMC samples, is part of it.
    """
    with np.errstate(divide="ignore"):
        if isinstance(law, Beta):
            p, q = np.log(np.maximum(values, 5e-324)), np.log1p(-values)
            return p + q if law.proper else law.a * p + law.b * q
        if isinstance(law, Dirichlet):
            return np.log(np.maximum(values, 5e-324)).sum(axis=-1)
        if isinstance(law, HalfNormal):
            return np.log(values)
    if isinstance(law, StudentT):
        square = law.coordinates(values)[..., 0] ** 2 / law.df
        return 0.5 * square + np.log1p(square)
    return np.zeros_like(values)


def _draws_of(trace: xr.DataTree, model: pm.Model) -> xr.DataTree:
    """Return the draws of the variables that a model has."""
    drawn = trace["posterior"].to_dataset()[[variable.name for variable in model.free_RVs]]
    return xr.DataTree.from_dict({"posterior": drawn})

"""A model compiled once and sampled for many data sets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import nutpie
import xarray as xr

from bayesatk._tools.seeding import RandomSource
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.scales import RightWrong, Scale, Scored
from bayesatk.data.study import Study, as_marked, population_of
from bayesatk.metrics.grid import MetricSpec, parse
from bayesatk.models.building import build_models, default_form, one_latent_family
from bayesatk.models.program import Form
from bayesatk.models.sampling import Sampling, sampled_result, with_data_of
from bayesatk.priors import (
    CategoryPrior,
    DirichletHyperPrior,
    Families,
    ModelPrior,
    Pooling,
    Prior,
)
from bayesatk.priors.choice import (
    resolve_category_prior,
    resolve_prior,
    with_families,
)


@dataclass(frozen=True)
class CompiledModel:
    """A model compiled by nutpie, made by one of the functions ``bayesatk.models.compile_*``.

    Attributes
    ----------
    scale, pooling, prior, form
        Options of the model.
    systems, questions, categories : int
        Sizes of the data with which it was compiled. New data must have as many systems and
        categories and, if p is sampled (``form="full"``), as many questions.
    programs : dict
        Compiled program of each difficulty family.

    See Also
    --------
    bayesatk.sample : samples one data set.
    """

    scale: type[Scale]
    pooling: Pooling
    prior: ModelPrior
    form: Form
    systems: int
    questions: int
    categories: int
    programs: dict[str, Any]

    def sample(
        self,
        data: object,
        metrics: MetricSpec,
        *,
        ci_prob: float = 0.95,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        progress: bool = False,
        keep: Sequence[Literal["p", "log_likelihood"]] = (),
        rng: RandomSource = None,
        sample_kwargs: Mapping[str, Any] | None = None,
    ) -> xr.DataTree:
        """Sample the posterior of new data, as `bayesatk.sample` does, without compiling again.

        Parameters
        ----------
        data, metrics, ci_prob, draws, tune, chains, progress, keep, rng
            As in `bayesatk.sample`.
        sample_kwargs : mapping, optional
            More arguments for `nutpie.sample`.

        Returns
        -------
        xarray.DataTree
            As from `bayesatk.sample`.
        """
        outcomes = as_marked(data)
        self._check(outcomes)
        how = Sampling(draws, tune, chains, progressbar=progress, options=sample_kwargs or {})
        study = Study(
            outcomes=outcomes, metrics=parse(metrics), pooling=self.pooling, prior=self.prior,
            population=population_of(self.pooling), ci_prob=float(ci_prob),
        )  # fmt: skip
        return sampled_result(
            study, self.form, how, rng, keep,
            lambda family: partial(with_data_of, self.programs[family]),
        )  # fmt: skip

    def _check(self, outcomes: Outcomes) -> None:
        another = " Compile another for such data."
        marginal = " Under partial pooling a model of form='marginal' takes any number."
        compiled = [("category", self.categories, "categories", "")]
        compiled += [("system", self.systems, "system(s)", another)]
        if self.form == "full":
            compiled += [("question", self.questions, "question(s)", another + marginal)]
        for dim, size, words, remedy in compiled:
            present = outcomes.dataset.sizes[dim]
            if present != size:
                raise ValueError(
                    f"data must have the {size} {words} the model was compiled for; got "
                    f"{present}.{remedy}"
                )


def compile_beta_binomial(
    data: object,
    pooling: Pooling = "partial",
    *,
    prior: Prior | None = None,
    difficulty: Families = None,
    form: Form | None = None,
) -> CompiledModel:
    """Compile a Beta-binomial model once, to sample many data sets.

    Compiling takes seconds for each difficulty family, and sampling a marginal model less than one
    second. Simulation studies and repeated evaluations should compile once.

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts
        Sets the number of systems (and, for ``form="full"``, of questions).
    pooling, prior, difficulty, form
        As in `bayesatk.sample`.

    Returns
    -------
    CompiledModel
        Its ``sample(data, metrics)`` is `bayesatk.sample` for data of this shape.

    See Also
    --------
    bayesatk.models.build : the model that is compiled.
    bayesatk.sample : one data set.

    Examples
    --------
    >>> model = compile_beta_binomial([[1, 0], [1, 1]])  # doctest: +SKIP
    >>> fits = [model.sample(runs, "pass@2") for runs in simulated]  # doctest: +SKIP
    """
    form = form or default_form(pooling)
    by_default = prior is None and difficulty is None
    resolved = resolve_prior(pooling, prior)
    if difficulty is not None:
        resolved = with_families(resolved, difficulty)
    resolved = one_latent_family(resolved, form, by_default)
    return _compiled(RightWrong, data, pooling, resolved, form)


def compile_dirichlet_multinomial(
    data: object,
    pooling: Pooling = "partial",
    *,
    prior: CategoryPrior | None = None,
    form: Form | None = None,
) -> CompiledModel:
    """Compile a Dirichlet-multinomial model once, to sample many data sets of scored categories.

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts
        Sets the number of systems and categories (and, for ``form="full"``, of questions).
    pooling, prior, form
        As in `bayesatk.sample`.

    Returns
    -------
    CompiledModel

    See Also
    --------
    bayesatk.models.build : the model that is compiled.
    bayesatk.sample : one data set.

    Examples
    --------
    >>> model = compile_dirichlet_multinomial(data)  # doctest: +SKIP
    >>> fits = [model.sample(runs, "max@2") for runs in simulated]  # doctest: +SKIP
    """
    if prior is None and pooling == "partial":
        prior = DirichletHyperPrior()
    resolved = resolve_category_prior(pooling, prior)
    if not isinstance(resolved, CategoryPrior):
        raise TypeError(
            f"prior must be a DirichletHyperPrior here; got {resolved!r:.80}. Levels in the order "
            "of their scores are sampled by bayesatk.sample."
        )
    return _compiled(Scored, data, pooling, resolved, form or default_form(pooling))


def _compiled(
    scale: type[Scale], data: object, pooling: Pooling, prior: ModelPrior, form: Form
) -> CompiledModel:
    """Compile the models of these data."""
    outcomes = as_marked(data)
    if scale is RightWrong:
        _ = outcomes.successes  # refused here, by name, where trials have other scores
    metrics = parse("bayes" if scale is Scored else "pass@1")
    study = Study(outcomes=outcomes, metrics=metrics, pooling=pooling, prior=prior)
    programs = {
        name: nutpie.compile_pymc_model(model) for name, model in build_models(study, form).items()
    }
    sizes = outcomes.dataset.sizes
    return CompiledModel(
        scale, pooling, prior, form, sizes["system"], sizes["question"], sizes["category"], programs
    )

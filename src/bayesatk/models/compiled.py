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
from bayesatk.data.study import Study
from bayesatk.data.tally import tally
from bayesatk.metrics.grid import MetricSpec, parse
from bayesatk.models.building import build_models, default_form, one_latent_family
from bayesatk.models.program import Form
from bayesatk.models.programs import Sampling, with_data_of
from bayesatk.models.sampling import sampled_result
from bayesatk.priors import CategoryPrior, CrossedPrior, Families, ModelPrior, Pooling, Prior
from bayesatk.priors.choice import (
    prior_of,
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
        categories and, if p is sampled (``form="full"`` or ``"crossed"``), as many questions.
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

    @classmethod
    def of(
        cls,
        scale: type[Scale],
        outcomes: Outcomes,
        pooling: Pooling,
        prior: ModelPrior,
        form: Form,
    ) -> "CompiledModel":
        """Compile the models of these data."""
        sizes = outcomes.dataset.sizes
        requested = parse("bayes" if scale is Scored else "pass@1")
        study = Study(outcomes=outcomes, metrics=requested, pooling=pooling, prior=prior)
        if scale is RightWrong:
            _ = outcomes.successes  # refused here, by name, where trials have other scores
        models = build_models(study, form)
        return cls(
            scale, pooling, prior, form, sizes["system"], sizes["question"], sizes["category"],
            {name: nutpie.compile_pymc_model(model) for name, model in models.items()},
        )  # fmt: skip

    def sample(
        self,
        data: object,
        metrics: MetricSpec,
        *,
        ci_prob: float = 0.95,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        progressbar: bool = False,
        keep: Sequence[Literal["p", "log_likelihood"]] = (),
        rng: RandomSource = None,
        sample_kwargs: Mapping[str, Any] | None = None,
    ) -> xr.DataTree:
        """Sample the posterior of new data, as `bayesatk.sample` does, without compiling again.

        Parameters
        ----------
        data, metrics, ci_prob, draws, tune, chains, progressbar, keep, rng
            As in `bayesatk.sample`.
        sample_kwargs : mapping, optional
            More arguments for `nutpie.sample`.

        Returns
        -------
        xarray.DataTree
            As from `bayesatk.sample`.
        """
        outcomes = data if isinstance(data, Outcomes) else tally(data)
        self._check(outcomes)
        how = Sampling(draws, tune, chains, progressbar=progressbar, options=sample_kwargs or {})
        study = Study(
            outcomes=outcomes, metrics=parse(metrics), pooling=self.pooling, prior=self.prior,
            ci_prob=float(ci_prob),
        )  # fmt: skip
        return sampled_result(
            study, self.form, how, rng, keep,
            lambda family: partial(with_data_of, self.programs[family]),
        )  # fmt: skip

    def _check(self, outcomes: Outcomes) -> None:
        sizes = outcomes.dataset.sizes
        if sizes["category"] != self.categories:
            raise ValueError(
                f"data must have the {self.categories} categories the model was compiled for; got "
                f"{sizes['category']}."
            )
        if sizes["system"] != self.systems:
            raise ValueError(
                f"data must have the {self.systems} system(s) the model was compiled for; got "
                f"{sizes['system']}. Compile another for such data."
            )
        if self.form in ("full", "crossed") and sizes["question"] != self.questions:
            raise ValueError(
                f"data must have the {self.questions} question(s) the model was compiled for; got "
                f"{sizes['question']}. Compile another for such data. Under partial pooling a "
                "model of form='marginal' takes any number."
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
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    form = form or default_form(pooling)
    by_default = prior is None and difficulty is None
    resolved = resolve_prior(pooling, prior)
    if difficulty is not None:
        resolved = with_families(resolved, difficulty)
    resolved = one_latent_family(resolved, form, by_default)
    return CompiledModel.of(RightWrong, outcomes, pooling, resolved, form)


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
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    prior = resolve_category_prior(pooling, prior)
    form = form or default_form(pooling)
    return CompiledModel.of(Scored, outcomes, pooling, prior, form)


def compile_crossed(data: object, *, prior: CrossedPrior | None = None) -> CompiledModel:
    """Compile the model of systems crossed with questions once, to sample many data sets.

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts
        Sets the number of systems and of questions.
    prior : CrossedPrior, optional

    Returns
    -------
    CompiledModel

    See Also
    --------
    bayesatk.models.build_crossed : the model that is compiled.
    bayesatk.sample : one data set.

    Examples
    --------
    >>> model = compile_crossed(data)  # doctest: +SKIP
    """
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    prior = prior_of(CrossedPrior, prior, "for form='crossed'")
    return CompiledModel.of(RightWrong, outcomes, "partial", prior, "crossed")

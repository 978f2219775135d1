"""A model compiled once and sampled for many data sets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import nutpie
import xarray as xr

from bayesatk.core.priors import Pooling, Prior, resolve_prior
from bayesatk.core.seeding import RandomSource, resolve_rng
from bayesatk.metrics import MetricSpec, parse
from bayesatk.models.builders import Form, build_beta_binomial, model_data
from bayesatk.models.sampling import Settings, default_form, result
from bayesatk.outcomes import Outcomes, tally


@dataclass(frozen=True)
class CompiledModel:
    """A Beta-binomial model compiled by nutpie; made by `bayesatk.compile_beta_binomial`.

    Attributes
    ----------
    pooling, prior, form
        Of the model.
    systems, questions : int
        Of the data it was compiled with. New data need as many systems and, where p is sampled
        (``form="full"``), as many questions.
    """

    pooling: Pooling
    prior: Prior
    form: Form
    systems: int
    questions: int
    program: Any

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
        """Sample the posterior of new data: what `bayesatk.sample` gives, without compiling.

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
        requested = parse(metrics)
        generator, seed = resolve_rng(rng)
        trace = nutpie.sample(
            self.program.with_data(**model_data(outcomes, self.form)),
            draws=draws, tune=tune, chains=chains, seed=int(generator.integers(2**31)),
            progress_bar=progressbar, save_warmup=False,
            **{"cores": min(chains, 2), **(sample_kwargs or {})},
        )  # fmt: skip
        options = {"draws": draws, "tune": tune, "sampler": "nutpie"}
        settings = Settings(self.pooling, self.prior, self.form, ci_prob, keep, seed, options)
        return result(outcomes, requested, trace, settings, generator)

    def _check(self, outcomes: Outcomes) -> None:
        sizes = outcomes.dataset.sizes
        if sizes["system"] != self.systems:
            raise ValueError(
                f"data must have the {self.systems} system(s) the model was compiled for; got "
                f"{sizes['system']}. Compile another with compile_beta_binomial."
            )
        if self.form == "full" and sizes["question"] != self.questions:
            raise ValueError(
                f"data must have the {self.questions} question(s) the model was compiled for; got "
                f"{sizes['question']}. form='marginal' takes any number."
            )


def compile_beta_binomial(
    data: object,
    pooling: Pooling = "partial",
    *,
    prior: Prior | None = None,
    form: Form | None = None,
) -> CompiledModel:
    """Compile a Beta-binomial model once, to sample many data sets.

    Compiling takes seconds, sampling the marginal model about a tenth of one: simulation studies
    and reruns of a benchmark should compile once.

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts
        Sets the number of systems (and, for ``form="full"``, of questions).
    pooling, prior, form
        As in `bayesatk.sample`.

    Returns
    -------
    CompiledModel
        Its ``sample(data, metrics)`` is `bayesatk.sample` for data of this shape.

    Examples
    --------
    >>> model = compile_beta_binomial([[1, 0], [1, 1]])  # doctest: +SKIP
    >>> fits = [model.sample(runs, "pass@2") for runs in simulated]  # doctest: +SKIP
    """
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    prior = resolve_prior(pooling, prior)
    form = form or default_form(pooling)
    model = build_beta_binomial(outcomes, pooling, prior=prior, form=form)
    sizes = outcomes.dataset.sizes
    program = nutpie.compile_pymc_model(model)
    return CompiledModel(pooling, prior, form, sizes["system"], sizes["question"], program)

"""Models sampled by NUTS. What nutpie compiled is kept: compiling takes longer than sampling.

A program is always run with the data of the model at hand, and never changed: one is right for all
models of its structure, in any thread.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from time import perf_counter
from typing import Any, Literal

import nutpie
import pymc as pm
import xarray as xr

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.data.study import Study
from bayesatk.models.program import Form
from bayesatk.priors import HyperPrior

Sampler = Literal["nutpie", "pymc", "numpyro", "blackjax"]
Compile = Callable[[pm.Model], Any]
_MOST = 12  # programs kept, of some 10 MB each
_OWN = ("blocking", "chains", "draws", "progress_bar", "return_raw_trace", "save_warmup", "seed",
        "tune")  # fmt: skip


@dataclass(frozen=True)
class Sampling:
    """How long and with what a model is sampled.

    Parameters
    ----------
    draws, tune, chains : int
        Draws kept and tuning steps per chain, and chains.
    sampler : Sampler
    progressbar : bool
        Show progress.
    options : mapping
        More arguments for `nutpie.sample`, or for `pymc.sample` with another sampler.
    """

    draws: int
    tune: int
    chains: int
    sampler: Sampler = "nutpie"
    progressbar: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        taken = sorted(set(self.options) & set(_OWN))
        if self.sampler == "nutpie" and taken:
            raise ArgumentError(
                Argument("sample_kwargs"),
                f" must hold arguments of nutpie.sample other than {', '.join(_OWN)}; got "
                f"{', '.join(taken)}. Leave them out: draws, tune, chains, rng and progressbar are "
                "arguments beside sample_kwargs.",
            )

    def run(self, model: pm.Model, seed: int, compiled: Compile | None = None) -> xr.DataTree:
        """Sample the posterior of the data that a model holds.

        Parameters
        ----------
        model : pymc.Model
        seed : int
        compiled : callable, optional
            ``compiled(model)`` is the program of nutpie with these data. Default: made here.
        """
        options = {"cores": min(self.chains, 2), **self.options}
        sizes = {"draws": self.draws, "tune": self.tune, "chains": self.chains}
        if self.sampler != "nutpie":
            trace: xr.DataTree = pm.sample(
                **sizes, model=model, nuts_sampler=self.sampler, random_seed=seed,
                progressbar=self.progressbar, quiet=not self.progressbar, **options,
            )  # fmt: skip
            return trace
        program = (compiled or nutpie.compile_pymc_model)(model)
        sizes["tune"] = max(1, self.tune)  # without a step to tune, nutpie aborts
        start = perf_counter()
        trace = nutpie.sample(
            program, **sizes, seed=seed, progress_bar=self.progressbar, save_warmup=False, **options
        )
        if trace["posterior"].sizes["draw"] < self.draws:  # nutpie gives what there was
            raise KeyboardInterrupt
        trace["posterior"].attrs |= {
            "inference_library": "nutpie",
            "inference_library_version": nutpie.__version__,
            "sampling_time": perf_counter() - start,
        }
        return trace


def with_data_of(program: Any, model: pm.Model) -> Any:
    """Return a program of nutpie with the data of a model of the same structure."""
    return program.with_data(**{data.name: data.get_value() for data in model.data_vars})


def compiler_of(study: Study, form: Form, family: str) -> Compile | None:
    """Return what compiles the model of a difficulty family, or takes a program that was kept.

    Parameters
    ----------
    study : Study
    form : Form
    family : str
        Empty where the prior has no families.

    Returns
    -------
    callable or None
        None of models that hold numbers of the case at hand besides data in containers, or that are
        of too many shapes to come again: with prior trials, covariates, groups or a judge.
    """
    special = study.grouping, study.prior_counts, study.design, study.judges
    if any(part is not None for part in special):
        return None
    prior, sizes = study.prior, study.outcomes.dataset.sizes
    if isinstance(prior, HyperPrior) and family:
        prior = prior.of_family(family)
    shape = [sizes["system"], sizes["category"]]
    if form != "marginal":
        shape.append(sizes["question"])
    structure = type(study.scale), study.pooling, prior, form, *shape
    return partial(_program, structure)


def _program(structure: Hashable, model: pm.Model) -> Any:
    return with_data_of(_compiled(_Template(structure, model)), model)


@dataclass(frozen=True)
class _Template:
    """A model, equal to all others of its structure."""

    structure: Hashable
    model: pm.Model = field(compare=False)


@lru_cache(maxsize=_MOST)
def _compiled(template: _Template) -> Any:
    return nutpie.compile_pymc_model(template.model)

"""The models that calibration draws from: truth, data, and posterior draws of every quantity."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.metrics.grid import Metric, MetricGrid
from bayesatk.models.forms import Form
from bayesatk.models.parts import Part
from bayesatk.results.schema import GROUPED_TARGETS, TARGETS, metric_values

Array = NDArray[np.float64]
Metrics = Sequence[Metric]
Quantities = dict[str, Array]
PyMCForm = Form | Literal["logit_normal"]
DRAWS = 199
THIN = 5  # of the draws of NUTS
_CHAINS = 2
_SIZE = {"draws": THIN * (DRAWS + 1) // _CHAINS, "chains": _CHAINS}


class Simulator(Protocol):
    """A model with a size: what calibration needs of it."""

    def simulate(self, rng: np.random.Generator) -> tuple[dict[str, float], Any]:
        """Draw the truth of every quantity from the prior, and data from that."""
        ...

    def exact(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Independent draws of every quantity from the closed form."""
        ...

    def sampled(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw every quantity by NUTS, thinned until draws are all but independent."""
        ...


def by_target(metrics: Metrics, drawn: Array) -> Quantities:
    """Name draws (draws, metrics, target) by metric and target."""
    return {
        f"{metric.label} {target}": drawn[:, i, j]
        for i, metric in enumerate(metrics)
        for j, target in enumerate(GROUPED_TARGETS[: drawn.shape[2]])
    }


def of_metrics(metrics: Metrics, flat: xr.Dataset) -> Quantities:
    """Draws of NUTS, by metric and target."""
    return {
        f"{metric.label} {target}": metric_values(flat, metric).sel(target=target).values
        for metric in metrics
        for target in TARGETS
    }


def compiled_draws(
    program: Any, data: Any, metrics: Metrics, rng: np.random.Generator
) -> xr.Dataset:
    """Thinned draws of metrics and p from a `bayesatk.models.compiled.CompiledModel`."""
    tree = program.sample(
        data, list(metrics), rng=rng, keep=["p"], sample_kwargs={"cores": 1}, **_SIZE
    )
    return thinned(tree["posterior"].to_dataset())


def thinned_draws(program: Any, data: Mapping[str, Any], rng: np.random.Generator) -> xr.Dataset:
    """Thinned draws of the variables of a model that nutpie compiled, of new data."""
    posterior = model_draws(program, data, rng)["posterior"].to_dataset()
    return posterior.isel(draw=slice(None, None, THIN))


def of_part(part: Part, metrics: Metrics) -> tuple[Quantities, Quantities]:
    """Draws of one system in a part: of its variables by name, and by metric and target."""
    extra = {name: _flat(own) for name, (_, own) in part.extra.items()}
    places = {metric.label: i for i, metric in enumerate(MetricGrid.of(metrics))}
    values = _flat(part.values)[:, [places[metric.label] for metric in metrics]]
    return extra, by_target(metrics, values)


def _flat(values: Array) -> Array:
    """Draws of the first system, chains one after the other."""
    return values.reshape(-1, *values.shape[2:])[:, 0]


def model_draws(program: Any, data: Mapping[str, Any], rng: np.random.Generator) -> xr.DataTree:
    """All draws from a model that nutpie compiled, of new data."""
    import nutpie

    found: xr.DataTree = nutpie.sample(
        program.with_data(**data), cores=1, seed=int(rng.integers(2**31)), progress_bar=False,
        save_warmup=False, **_SIZE,
    )  # fmt: skip
    return found


def thinned(posterior: xr.Dataset) -> xr.Dataset:
    """Draws so far apart that they are all but independent."""
    flat: xr.Dataset = posterior.stack(sample=("chain", "draw"))
    return flat.isel(sample=slice(None, THIN * DRAWS, THIN))

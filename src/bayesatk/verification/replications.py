"""The replications of `calibrate`: truth and data from a declared PyMC program, and their ranks.

Truth and data are one forward draw of the program in the form that has probabilities and trials as
variables: a millisecond for each data set, once it is compiled. What is asked of the truth is
computed as it is of draws of NUTS: the truth is a posterior of one draw.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from itertools import pairwise
from threading import Lock
from typing import Any, Literal

import numpy as np
import pymc as pm
import xarray as xr
from pymc.pytensorf import compile as compile_pytensor
from pymc.pytensorf import find_rng_nodes, reseed_rngs

from bayesatk._tools.arrays import Array, Rng
from bayesatk._tools.batches import misshapen
from bayesatk._tools.messages import ArgumentError, one_of
from bayesatk.data.scales import RIGHT_WRONG, Scored
from bayesatk.data.study import Study, population_of
from bayesatk.data.tally import tally
from bayesatk.metrics.grid import Metric, parse
from bayesatk.models.building import build_models
from bayesatk.models.evidence import average
from bayesatk.models.metric_draws import count_draws
from bayesatk.models.program import build_program
from bayesatk.models.sampling import Sampling, with_data_of
from bayesatk.posterior.models_of import Declared
from bayesatk.priors import Families, HyperPrior, Pooling
from bayesatk.priors.choice import describe_prior, with_families
from bayesatk.results.schema import TARGETS

Engine = Literal["closed_form", "pymc"]
Quantities = dict[str, Array]
BATCH = 50
DRAWS = 199
_THIN, _CHAINS = 5, 2  # of NUTS, until draws are all but independent
_NUTS = Sampling(
    draws=_THIN * (DRAWS + 1) // _CHAINS, tune=1000, chains=_CHAINS, options={"cores": 1}
)


@dataclass(frozen=True)
class Replications:
    """Everything that a replication depends on, bar its number; the arguments of `calibrate`."""

    questions: int
    trials: int
    metrics: str
    pooling: Pooling
    prior: Any
    engine: Engine
    seed: int
    scores: tuple[float, ...] | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """All of it, as a file of results holds it."""
        return asdict(self) | {"prior": describe_prior(self.prior)}

    def rng(self, replication: int) -> Rng:
        """Return the randomness of one replication, whatever the others do."""
        return np.random.default_rng([self.seed, replication])

    def quantities(self) -> list[str]:
        """Return the names of the places that every replication has."""
        return sorted(_model(self).simulate(self.rng(0))[0])

    def run_batch(self, start: int) -> dict[str, list[float]]:
        """Places of the truth for one batch of replications."""
        rows = [self.replicate(start + i) for i in range(BATCH)]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def replicate(self, replication: int) -> dict[str, float]:
        """Places of the truth among draws of its posterior."""
        rng, model = self.rng(replication), _model(self)
        truth, data = model.simulate(rng)
        draws = model.sampled(data, rng) if self.engine == "pymc" else model.exact(data, rng)
        return {name: _place(value.item(), draws[name], rng) for name, value in truth.items()}


@cache
def _model(asked: Replications) -> "CalibratedModel":
    """Return what is drawn from and fitted, compiled once in every process."""
    size = asked.questions, asked.trials
    if asked.scores is None:
        outcomes = tally((np.zeros(size[0], int), np.full(*size)))
    else:
        counts = np.zeros((1, asked.questions, len(asked.scores)), int)
        counts[..., 0] = asked.trials
        outcomes = tally(xr.Dataset(
            {"count": (("system", "question", "category"), counts)},
            coords={"score": ("category", list(asked.scores))},
        ))  # fmt: skip
    study = Study(
        outcomes=outcomes, metrics=parse(asked.metrics), pooling=asked.pooling, prior=asked.prior,
        population=population_of(asked.pooling),
    )  # fmt: skip
    return CalibratedModel(study)


def batch_fault(names: list[str], values: Any) -> str:
    """Say what is wrong with a batch that was read from a file; "" if nothing is."""
    if not isinstance(values, dict) or sorted(values) != names:
        got = list(values) if isinstance(values, dict) else values
        return f"{got!r:.80} where {', '.join(names)} must be"
    for places in values.values():
        if wrong := misshapen(places, BATCH):
            return wrong
        outside = [share for share in places if not 0.0 <= share <= 1.0]
        if outside:
            return f"{outside[0]} where a probability must be"
    return ""


def _place(value: float, draws: Array, rng: Rng) -> float:
    """Rank of the truth among the draws, ties and the gap it falls in broken at random."""
    below, same = int((draws < value).sum()), int((draws == value).sum())
    rank = below + rng.integers(0, same + 1)
    return float((rank + rng.random()) / (len(draws) + 1))


def checked(asked: Replications, difficulty: Families) -> Replications:
    """Return what was asked with its prior resolved, or refuse what has no model to simulate."""
    one_of("engine", asked.engine, ("closed_form", "pymc"))
    labels = [metric.label for metric in parse(asked.metrics) if not metric.of_marks]
    if labels:
        raise ArgumentError(
            "metrics", f" must be of marks or their scores here; got {', '.join(labels)}. Leave it "
            "out; bayesatk.verify compares it with PyMC on your data.",
        )  # fmt: skip
    return replace(asked, prior=_resolved_prior(asked, difficulty))


def _resolved_prior(asked: Replications, difficulty: Families) -> Any:
    """Return the prior given, or the default of the kind that the model needs."""
    scale = RIGHT_WRONG if asked.scores is None else Scored(asked.scores)
    prior: Any = scale.resolve_prior(asked.pooling, asked.prior)
    if difficulty is not None:
        prior = with_families(prior, difficulty)
    elif asked.prior is None and asked.scores is not None and asked.engine == "pymc":
        prior = with_families(prior, "beta")  # the sampled model of scored levels is of one family
    if isinstance(prior, HyperPrior) and not prior.proper:
        raise ArgumentError(
            "prior",
            f" must be proper to simulate data from it; got icc={prior.icc}. The default is.",
        )
    return prior


def score_values(scores: object) -> tuple[float, ...] | None:
    """Return the scores of the categories, checked."""
    if scores is None:
        return None
    try:
        values = tuple(float(score) for score in scores)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        values = ()
    rising = all(low < high for low, high in pairwise(values))
    if len(values) < 2 or not rising or not np.isfinite(values).all():
        raise ArgumentError(
            "scores",
            f" must be two or more finite numbers in rising order; got {scores!r:.80}.",
        )
    return values


class Forward:
    """A model compiled to be drawn from.

    Parameters
    ----------
    model : pymc.Model
        Whose prior has no potentials.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesatk.models import build
    >>> drawn = Forward(build([[1, 0], [1, 1]], form="full")).draw(np.random.default_rng(1))
    >>> dict(drawn["p"].sizes), bool((drawn["successes"] <= 2).all())
    ({'chain': 1, 'draw': 1, 'system': 1, 'question': 2}, True)
    """

    def __init__(self, model: pm.Model) -> None:
        variables: list[Any] = [*model.free_RVs, *model.deterministics, *model.observed_RVs]
        self._dims = {
            variable.name: model.named_vars_to_dims.get(variable.name, ()) for variable in variables
        }
        self._random = find_rng_nodes(variables)
        # Compiling to C costs more than interpreting the few thousand draws of a study.
        self._function = compile_pytensor([], variables, mode="FAST_COMPILE")
        self._lock = Lock()  # between the seed and the draw

    def draw(self, rng: Rng) -> xr.Dataset:
        """Draw all variables once, as a trace of one chain and one draw."""
        with self._lock:
            reseed_rngs(self._random, int(rng.integers(2**63)))
            values = self._function()
        return xr.Dataset(
            {
                name: (("chain", "draw", *self._dims_of(name, value.ndim)), value[None, None])
                for name, value in zip(self._dims, values, strict=True)
            }
        )

    def _dims_of(self, name: str, axes: int) -> tuple[str, ...]:
        return self._dims[name] or tuple(f"{name}_{axis}" for axis in range(axes))


class CalibratedModel:
    """The model of a study: it draws truth and data, and from their posterior.

    Parameters
    ----------
    study : Study
        Of one system, with data of the right size.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self._forward: dict[str, Forward] = {}
        self._programs: dict[str, Any] = {}

    def simulate(self, rng: Rng) -> tuple[Quantities, Study]:
        """Draw a family, hyperparameters, probabilities and counts."""
        study, family = self.study, ""
        if isinstance(study.prior, HyperPrior):
            names, chances = zip(*study.prior.family_prior.items(), strict=True)
            family = str(rng.choice(names, p=chances))
        if family not in self._forward:
            self._forward[family] = Forward(build_program(study, family, "full"))
        drawn = self._forward[family].draw(rng)
        truth = self._quantities(study, {family: drawn}, rng)
        values = drawn[study.scale.variable].isel(chain=0, draw=0).values
        counts = study.scale.by_category(values, study.outcomes.trials.values)
        dataset = study.outcomes.dataset
        dataset = dataset.assign(count=(("system", "question", "category"), counts))
        return truth, replace(study, outcomes=replace(study.outcomes, dataset=dataset))

    def exact(self, data: Study, rng: Rng) -> Quantities:
        """Draw from the closed form."""
        model = Declared.of_study(data).model(0)
        drawn = model.fit([data.scale.judged(metric) for metric in data.metrics]).draw(
            DRAWS, rng, True
        )
        assert drawn.p is not None
        return self._named(data.metrics, drawn.metrics, {**drawn.hyper, "p": drawn.p})

    def sampled(self, data: Study, rng: Rng) -> Quantities:
        """Draw with NUTS, so far apart that draws are independent."""
        posteriors = {
            family: self._nuts(model, family, rng) for family, model in build_models(data).items()
        }
        quantities = self._quantities(data, posteriors, rng)
        return {name: drawn[: _THIN * DRAWS : _THIN] for name, drawn in quantities.items()}

    def _nuts(self, model: Any, family: str, rng: Rng) -> xr.Dataset:
        """Sample a model with NUTS; its program is compiled once, and takes other data."""
        import nutpie

        if family not in self._programs:
            self._programs[family] = nutpie.compile_pymc_model(model)
        program = partial(with_data_of, self._programs[family])
        trace = _NUTS.run(model, int(rng.integers(2**31)), program)
        posterior: xr.Dataset = trace["posterior"].to_dataset()
        return posterior

    def _quantities(
        self, study: Study, posteriors: Mapping[str, xr.Dataset], rng: Rng
    ) -> Quantities:
        """Name what draws of every family say of the data; chains one after the other."""
        difficulties = None
        if isinstance(study.prior, HyperPrior):
            difficulties = average(study, posteriors, rng).difficulties
        source = next(iter(posteriors.values()))
        drawn = count_draws(study, source, True, rng, difficulties)

        def of_system(values: Array) -> Array:
            return values.reshape(-1, *values.shape[2:])[:, 0]

        variables = {name: of_system(values) for name, (_, values) in drawn.variables.items()}
        return self._named(list(study.grid), of_system(drawn.values), variables)

    def _named(
        self, metrics: Sequence[Metric], values: Array, variables: Mapping[str, Array]
    ) -> Quantities:
        """Name draws: of metrics asked for, every hyperparameter, and the first p.

        Parameters
        ----------
        metrics : sequence of Metric
        values : ndarray, shape (draws, metrics, targets)
        variables : mapping of ndarray, shape (draws, ...)
        """
        study, scale = self.study, self.study.scale
        quantities: Quantities = {}
        for name, drawn in variables.items():
            if drawn.ndim == 1:
                quantities[name] = drawn
            elif name == "p":
                quantities[f"{scale.rated}_first"] = scale.rate(drawn[:, 0])
            elif name == "mean_p":  # of scored categories
                quantities |= {"mean_p lowest": drawn[:, 0], "mean_p highest": drawn[:, -1]}
        labels = [metric.label for metric in metrics]
        for metric in study.metrics:
            by_target = values[:, labels.index(metric.label)].T
            for target, drawn in zip(TARGETS, by_target, strict=True):
                if target == TARGETS[1] and study.bootstrapped:
                    continue  # by the Bayesian bootstrap, which is no model to simulate
                quantities[f"{metric.label} {target}"] = drawn
        return quantities

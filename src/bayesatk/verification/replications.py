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
from bayesatk.models.building import build_models, default_form, one_latent_family
from bayesatk.models.evidence import average
from bayesatk.models.metric_draws import count_draws
from bayesatk.models.program import Form, build_program
from bayesatk.models.sampling import Sampling, with_data_of
from bayesatk.posterior.models_of import Declared
from bayesatk.priors import Families, HyperPrior, Pooling
from bayesatk.priors.choice import describe_prior, with_families
from bayesatk.results.schema import GROUPED_TARGETS

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
    form: Form | None = None
    scores: tuple[float, ...] | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """All of it, as a file of results holds it."""
        return asdict(self) | {"prior": describe_prior(self.prior)}

    def kind(self) -> Any:
        """Return what is drawn from and fitted: it draws truth and data, and their posterior."""
        study = count_study(
            self.questions, self.trials, self.scores, metrics=parse(self.metrics),
            pooling=self.pooling, prior=self.prior, population=population_of(self.pooling),
        )  # fmt: skip
        return CountKind(study, self.form)

    def rng(self, replication: int) -> Rng:
        """Return the randomness of one replication, whatever the others do."""
        return np.random.default_rng([self.seed, replication])

    def quantities(self) -> list[str]:
        """Return the names of the places that every replication has."""
        return sorted(_kind(self).simulate(self.rng(0))[0])

    def run_batch(self, start: int) -> dict[str, list[float]]:
        """Places of the truth for one batch of replications."""
        rows = [self.replicate(start + i) for i in range(BATCH)]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def replicate(self, replication: int) -> dict[str, float]:
        """Places of the truth among draws of its posterior."""
        rng, kind = self.rng(replication), _kind(self)
        truth, data = kind.simulate(rng)
        draws = kind.sampled(data, rng) if self.engine == "pymc" else kind.exact(data, rng)
        return {name: _place(value.item(), draws[name], rng) for name, value in truth.items()}


@cache
def _kind(asked: Replications) -> Any:
    """Return what is drawn from and fitted, compiled once in every process."""
    return asked.kind()


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
    one_of("form", asked.form or "marginal", ("marginal", "full"))
    if asked.form is not None and asked.engine != "pymc":
        raise ArgumentError(
            "form",
            f" must be left out for engine='closed_form'; got {asked.form!r}. Use engine='pymc'.",
        )
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
    by_default = asked.prior is None and difficulty is None
    # The sampled model of scored levels is of one family.
    alone = asked.scores is not None and asked.engine != "closed_form"
    prior = one_latent_family(prior, asked.form or "marginal", by_default, alone)
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


class CountKind:
    """Marks or scores of one system.

    Parameters
    ----------
    study : Study
        With data of the right size.
    form : Form, optional
        Of the model that NUTS samples.
    """

    def __init__(self, study: Study, form: Form | None = None) -> None:
        self.study, self.form = study, form or default_form(study.pooling)
        self._forward: dict[str, Forward] = {}
        self._programs: dict[str, Any] = {}

    def forward(self, rng: Rng) -> tuple[str, xr.Dataset]:
        """Draw a family, and hyperparameters, probabilities and counts."""
        family = drawn_family(self.study.prior, rng)
        if family not in self._forward:
            self._forward[family] = Forward(build_program(self.study, family, "full"))
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
        structured = data.grouping is not None or data.design is not None
        models = build_models(data, self.form, distinct=not structured)
        posteriors = {
            family: nuts_draws(model, self._programs, family, rng)
            for family, model in models.items()
        }
        return thinned(self.quantities(data, posteriors, rng))

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
            "group_mean": {"group_mean_first": 0},
        }  # fmt: skip
        return {label: drawn[:, column] for label, column in columns.get(name, {}).items()}


def count_study(
    questions: int, trials: int, scores: tuple[float, ...] | None = None,
    columns: Mapping[str, Any] | None = None, **asked: Any,
) -> Study:  # fmt: skip
    """Return a study of the right size, whose data are to be drawn; `columns` are of `tally`."""
    counts = np.zeros((1, questions, len(scores or (0.0, 1.0))), int)
    counts[..., 0] = trials
    if scores is None:
        outcomes = tally((counts[..., 1], counts.sum(axis=2)), **(columns or {}))
    else:
        outcomes = tally(xr.Dataset(
            {"count": (("system", "question", "category"), counts)},
            coords={"score": ("category", list(scores))},
        ))  # fmt: skip
    return Study(outcomes=outcomes, **asked)


def drawn_family(prior: object, rng: Rng) -> str:
    """Draw a family by its prior probability; empty where the prior has none."""
    if not isinstance(prior, HyperPrior):
        return ""
    names, chances = zip(*prior.family_prior.items(), strict=True)
    return str(rng.choice(names, p=chances))


def nuts_draws(model: Any, programs: dict[str, Any], family: str, rng: Rng) -> xr.Dataset:
    """Sample a model with NUTS; its program is compiled once, and takes other data."""
    import nutpie

    if family not in programs:
        programs[family] = nutpie.compile_pymc_model(model)
    program = partial(with_data_of, programs[family])
    trace = _NUTS.run(model, int(rng.integers(2**31)), program)
    posterior: xr.Dataset = trace["posterior"].to_dataset()
    return posterior


def thinned(quantities: Quantities) -> Quantities:
    """Draws so far apart that they are all but independent."""
    return {name: drawn[: _THIN * DRAWS : _THIN] for name, drawn in quantities.items()}

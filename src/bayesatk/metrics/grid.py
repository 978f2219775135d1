"""Metrics by name: parsing, registering, and the grid that one analysis computes.

A `MetricGrid` is the rectangle (variables x k x tau) of the requested metrics.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import product

import numpy as np

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.metrics.families import COST as COST
from bayesatk.metrics.families import COST_PER_SUCCESS as COST_PER_SUCCESS
from bayesatk.metrics.families import COSTS as COSTS
from bayesatk.metrics.families import FAMILIES as FAMILIES
from bayesatk.metrics.families import MEAN_NAMES as MEAN_NAMES
from bayesatk.metrics.families import Family as Family
from bayesatk.metrics.families import Metric as Metric

_KNOWN_METRICS = (
    "Known are mean, pass@k, pass^k, maj@k, max@k, min@k, plurality@k, auc@k, mg-pass@k, "
    "g-pass@k:tau, cost and cost/success, with numbers for k and tau."
)

_BUILT_IN_SYMBOLS = frozenset(FAMILIES)  # no registered family may have one of them
MetricSpec = str | Metric | Iterable[str | Metric]


def parse(metrics: MetricSpec) -> tuple[Metric, ...]:
    """Read metrics as people write them.

    A `Metric` of a family of one's own makes the family known by its symbol, so that tables and
    comparisons of the result find it.

    Parameters
    ----------
    metrics : str, Metric, or iterable of them
        ``"pass@1,4"`` is pass@1 and pass@4; ``"g-pass@8:0.25,0.5"`` has two taus; blanks separate
        metrics inside one string. ``"pass_at_4"`` is pass@4. The mean score is ``"mean"``,
        ``"bayes"``, ``"avg"``, ``"average"`` or ``"accuracy"``: a result has it under the name that
        was asked for. A number of trials does not change it: ``"avg@16"`` is ``"avg"``.

    Returns
    -------
    tuple of Metric
        Without repetitions, in the order given.

    Raises
    ------
    ValueError
        Unknown name, ``k`` not an integer >= 1, or tau outside [0, 1].

    Examples
    --------
    >>> [metric.label for metric in parse("pass@1,4 mean")]
    ['pass@1', 'pass@4', 'mean']
    >>> [metric.label for metric in parse(["pass_at_4", "pass_hat_2", "accuracy", "avg@16"])]
    ['pass@4', 'pass^2', 'accuracy', 'avg']
    """
    members = _read(metrics)
    for metric in members:
        if metric not in COSTS:
            register(metric.family)
    return members


def _read(metrics: MetricSpec) -> tuple[Metric, ...]:
    """Return metrics without repetitions, and register none.

    On a worker process families are copies of those known here.
    """
    if not isinstance(metrics, Iterable | Metric):
        raise ArgumentError(
            "metrics", f" must be text or Metrics; got {metrics!r}. {_KNOWN_METRICS}"
        )
    items = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    unique: dict[Metric, None] = {}
    for item in items:
        members = [item] if isinstance(item, Metric) else _parse_text(item)
        unique.update(dict.fromkeys(members))
    if not unique:
        rule = f" must name at least one metric; got {metrics!r}. {_KNOWN_METRICS}"
        raise ArgumentError("metrics", rule)
    return tuple(unique)


def without_costs(metrics: MetricSpec) -> tuple[MetricSpec, tuple[Metric, ...]]:
    """Divide metrics into those of scores, the mean score if there is none, and those of costs.

    Examples
    --------
    >>> others, costs = without_costs(["pass@1,4 cost", "cost/success"])
    >>> others, [metric.label for metric in costs], without_costs("cost")[0]
    (['pass@1,4'], ['cost', 'cost/success'], 'mean')
    """
    if not isinstance(metrics, str | Iterable):
        return metrics, ()
    items = [metrics] if isinstance(metrics, str) else list(metrics)
    words = [word for item in items for word in (_words(item) if isinstance(item, str) else [item])]
    costs = tuple(metric for metric in COSTS if metric.label in words)
    if not costs:
        return items, ()
    return [word for word in words if word not in ("cost", "cost/success")] or "mean", costs


def one_metric(metric: object) -> Metric:
    """Return the single metric of right and wrong, or refuse.

    Examples
    --------
    >>> one_metric("pass@4").label
    'pass@4'
    """
    (parsed, *more) = parse(metric)  # type: ignore[arg-type]
    if more or parsed.voted:
        raise ArgumentError(
            "metric", f" must be one metric of right and wrong at one k; got {metric!r}."
        )
    return parsed


def check_sizes(metrics: Iterable[Metric]) -> None:
    """Refuse a k beyond 20 000 (1000 for votes), where the answer would be that of the prior.

    Examples
    --------
    >>> check_sizes(parse("max@2"))
    """
    for metric in metrics:
        k_max = 1000 if metric.voted else 20_000
        if metric.k > k_max:
            raise ArgumentError(
                "k",
                f" must be at most {k_max} for {metric.family.symbol}k; got "
                f"k={metric.k}. Choose a smaller k: the work grows with k, and so far beyond the "
                "number of trials the prior alone decides the answer.",
            )


def _words(text: str) -> list[str]:
    """Return the names of metrics between blanks, or commas that no further k follows.

    Examples
    --------
    >>> _words("pass@1,4,mean, g-pass@4:.5,.75")
    ['pass@1,4', 'mean', 'g-pass@4:.5,.75']
    """
    return re.sub(r",(?=\s|[^\W\d])", " ", text).split()


def _parse_text(text: str) -> Iterator[Metric]:
    if not isinstance(text, str):
        raise TypeError(
            f"metrics must be strings or Metric objects; got {text!r}. {_KNOWN_METRICS}"
        )
    for word in _words(text):
        lowered = word.lower()
        name, sign, trials = lowered.partition("@")
        if name in MEAN_NAMES and (not sign or trials == "n" or trials.isdecimal()):
            yield FAMILIES[name].at(1)
            continue
        for variable, symbol in _spelled_out().items():
            if lowered.startswith(variable) and lowered[len(variable) :][:1].isdecimal():
                lowered = symbol + lowered[len(variable) :]
        position = max(lowered.find("@"), lowered.find("^")) + 1
        family = FAMILIES.get(lowered[:position])
        if lowered in ("cost", "cost/success"):
            raise ArgumentError(
                "metrics",
                f" must be of scores here; got {word!r}. Costs are compared by "
                "bayesatk.compare, in the shell bayesatk compare.",
            )
        if family is None:
            rule = (
                " To reach a score is a rule, ",
                Argument("success", "score >= 0.5"),
                ", with pass@k.",
            )
            raise ArgumentError(
                "metrics",
                f": {word!r} is not a known metric.",
                *(rule if ">" in word else (_suggestion(lowered) or f" {_KNOWN_METRICS}",)),
            )
        ks, _, taus = lowered[position:].partition(":")
        yield from _members(family, word, ks, taus)


def _spelled_out() -> dict[str, str]:
    """Return the symbol of each metric by its variable without the k, such as pass_at_: pass@."""
    return {
        family.variable.removesuffix("k"): symbol
        for symbol, family in FAMILIES.items()
        if family.has_k
    }


def _suggestion(word: str) -> str:
    """Return "Did you mean ...?" with the closest metric; an empty text if none is close."""
    name = word.rstrip("0123456789,.:")
    ks = word[len(name) :].lstrip(",.:") or "1"
    symbols = [symbol for symbol, family in FAMILIES.items() if family.has_k]
    name = name if name[-1:] in ("@", "^", "_") else f"{name}@"
    closest = get_close_matches(name, [*symbols, *MEAN_NAMES, *_spelled_out()], 1, 0.6)
    if not closest:
        return ""
    symbol = _spelled_out().get(closest[0], closest[0])
    suggested = symbol if symbol in MEAN_NAMES else symbol + ks
    return f" Did you mean {suggested!r}?"


def register(family: Family) -> Family:
    """Make a metric of one's own known by its symbol, as those of the library are.

    Then ``"two@4"`` is a metric wherever one may be named. Passing ``two.at(4)`` to a function
    registers it, too; a result that was saved needs it registered where it is read.

    Parameters
    ----------
    family : Family
        Its symbol in lower case, ending in @ or ^; neither the symbol nor the variable of a known
        metric.

    Returns
    -------
    Family
        The one given. It takes the place of an earlier one of your own with its symbol.

    Raises
    ------
    ValueError
        If the symbol cannot be one, or symbol or variable are taken.

    See Also
    --------
    Family : what is registered.

    Examples
    --------
    >>> from bayesatk.metrics.credit import Credit
    >>> both = lambda k: Credit.of(j >= 2 for j in range(k + 1))
    >>> pair = register(Family("pair_at_k", "pair@", both))
    >>> parse("pair@3")[0].label
    'pair@3'
    >>> _ = FAMILIES.pop("pair@")  # forgotten again
    """
    symbol, registered = family.symbol, FAMILIES.get(family.symbol)
    if registered == family:
        return family
    well_formed = symbol == symbol.lower() and symbol[-1:] in ("@", "^") and len(symbol) > 1
    if not well_formed or any(sign in symbol[:-1] for sign in "@^,: "):
        raise ValueError(
            "symbol must be lower case, ending in '@' or '^', with no other @, ^, comma, colon or "
            f"blank; got {symbol!r}."
        )
    taken = {other.variable for other in FAMILIES.values() if other.symbol != symbol}
    if symbol in _BUILT_IN_SYMBOLS or family.variable in taken:
        raise ValueError(
            f"symbol and variable must be new; {symbol!r} or {family.variable!r} is a metric "
            "already. Choose others."
        )
    FAMILIES[symbol] = family
    return family


def _members(family: Family, word: str, ks: str, taus: str) -> Iterator[Metric]:
    try:
        k_values = [int(k) for k in ks.split(",")]
        tau_values = [float(tau) for tau in taus.split(",")] if taus else [None]
    except ValueError:
        example = f"{family.symbol}1,4" if family.symbol != "g-pass@" else "g-pass@4:0.5"
        raise ArgumentError(
            "metrics",
            f": {word!r} must have integers after '{family.symbol}', separated by "
            f"commas, and numbers after ':', if any. Try {example}.",
        ) from None
    for k, tau in product(k_values, tau_values):
        metric = family.at(k, tau)
        if not metric.voted:
            _ = metric.credit  # a tau outside [0, 1] is refused here, by name
        yield metric


@dataclass(frozen=True)
class MetricGrid:
    """The rectangle of metrics that one analysis computes: every variable at every k and tau.

    Parameters
    ----------
    families : tuple of Family
        One result variable each.
    ks : tuple of int
        The union of all requested ``k``, ascending: variables share one ``k`` coordinate.
    taus : tuple of float
        The union of all requested ``tau``, ascending; empty when none is.
    """

    families: tuple[Family, ...]
    ks: tuple[int, ...]
    taus: tuple[float, ...]

    @classmethod
    def of(cls, metrics: MetricSpec) -> "MetricGrid":
        """Return the smallest grid that holds the metrics.

        Examples
        --------
        >>> grid = MetricGrid.of(["pass@1,4", "maj@5"])
        >>> grid.ks, [metric.label for metric in grid]
        ((1, 4, 5), ['pass@1', 'pass@4', 'pass@5', 'maj@1', 'maj@4', 'maj@5'])
        """
        members = _read(metrics)
        families = tuple(dict.fromkeys(metric.family for metric in members))
        names = [family.variable for family in families]
        if len(set(names)) < len(names):
            rule = f": two families share a variable name; got {names}."
            raise ArgumentError("metrics", rule)
        return cls(
            families,
            tuple(sorted({metric.k for metric in members if metric.family.has_k})),
            tuple(sorted({metric.tau for metric in members if metric.tau is not None})),
        )

    def __iter__(self) -> Iterator[Metric]:
        for family in self.families:
            ks = self.ks if family.has_k else (1,)
            taus: tuple[float | None, ...] = self.taus if family.has_tau else (None,)
            for k, tau in product(ks, taus):
                yield Metric(family, k, tau)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @cached_property
    def judged(self) -> dict[int, Metric]:
        """Metrics of the scores of trials, by position."""
        return {i: metric for i, metric in enumerate(self) if not metric.voted}

    @cached_property
    def voted(self) -> dict[int, Metric]:
        """Votes between answers, by position."""
        return {i: metric for i, metric in enumerate(self) if metric.voted}

    @property
    def coords(self) -> dict[str, list[int] | list[float]]:
        """Coordinates of the ``k`` and ``tau`` dimensions in use."""
        coords: dict[str, list[int] | list[float]] = {}
        if any(family.has_k for family in self.families):
            coords["k"] = list(self.ks)
        if self.taus:
            coords["tau"] = list(self.taus)
        return coords

    def split(
        self, values: Array, leading: tuple[str, ...], trailing: tuple[str, ...] = ()
    ) -> dict[str, tuple[tuple[str, ...], Array]]:
        """Cut an array whose axis ``len(leading)`` runs over the grid into named variables.

        Parameters
        ----------
        values : ndarray, shape (*leading, len(grid), *trailing)
            One slice per metric, in iteration order.
        leading, trailing : tuple of str
            Names of the other dimensions.

        Returns
        -------
        dict of variable -> (dims, ndarray)
            With dims ``(*leading[, k][, tau], *trailing)``, as xarray takes them.
        """
        axis, start = len(leading), 0
        variables = {}
        for family in self.families:
            extra = {"k": len(self.ks)} if family.has_k else {}
            if family.has_tau:
                extra["tau"] = len(self.taus)
            stop = start + int(np.prod([*extra.values()], dtype=int))
            block = values[(slice(None),) * axis + (slice(start, stop),)]
            shape = block.shape[:axis] + tuple(extra.values()) + block.shape[axis + 1 :]
            variables[family.variable] = ((*leading, *extra, *trailing), block.reshape(shape))
            start = stop
        return variables

"""A result as a DataTree that prints as a person reads it."""

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
import xarray as xr

_OPTIONS = ("method", "tolerance", "drop")  # of a selection, beside labels


class ResultTree(xr.DataTree):  # type: ignore[no-untyped-call]
    """A result: a DataTree that prints its newest table. ``print(fit.tree)`` shows all groups.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate([[1, 0], [1, 1]], "pass@1", rng=1, draws=10)
    >>> print(str(fit).splitlines()[0])
    1 system x 2 questions, 4 trials; pass@1
    >>> str(fit.tree).startswith("<xarray.DataTree>")
    True
    """

    __slots__ = ()

    def sel(self, indexers: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Select by labels, as xarray does; by ``system`` the result of some systems, or of one.

        Comparisons, ranks and leaderboards depend on which systems there are, so they are left
        out: compare again. As in xarray, one label takes the dimension away and a list keeps it.
        Without it ArviZ's plots of counts (``az.plot_ppc_rootogram``, ``az.plot_ppc_pit`` and
        others) see observations along one dimension, the questions. A selection along other
        dimensions than systems, chains and draws has the numbers, but is no result any more.

        Raises
        ------
        ValueError
            If the label of a system is unknown.

        See Also
        --------
        bayesatk.Outcomes.sel : the same for data.

        Examples
        --------
        >>> import bayesatk
        >>> runs = {"a": [[1, 0]], "b": [[1, 1]], "c": [[0, 0]]}
        >>> fit = bayesatk.evaluate(runs, "mean", pooling="none", rng=1)
        >>> fit.sel(system=["a", "c"])["posterior"]["system"].values.tolist()
        ['a', 'c']
        >>> fit.sel(system="b")["observed_data"]["successes"].values.tolist()
        [2]
        """
        from bayesatk.results.result import Result
        from bayesatk.results.selection import systems_of

        if not self._is_result:
            return super().sel(indexers, *args, **kwargs)
        options = {name: kwargs.pop(name) for name in _OPTIONS if name in kwargs}
        labels: dict[Any, Any] = {**(indexers or {}), **kwargs}
        selected: Any = self
        if "system" in labels:
            selected = systems_of(Result.of(self), labels.pop("system"))
        if not labels:
            return selected
        return _selected(super(ResultTree, selected).sel(labels, *args, **options), labels)

    def isel(self, indexers: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Select by positions, as `sel` does by labels."""
        from bayesatk.results.result import Result

        if not self._is_result:
            return super().isel(indexers, *args, **kwargs)
        options = {name: kwargs.pop(name) for name in ("drop", "missing_dims") if name in kwargs}
        positions: dict[Any, Any] = {**(indexers or {}), **kwargs}
        selected: Any = self
        if "system" in positions:
            systems = Result.of(self).systems
            chosen = np.arange(len(systems))[positions.pop("system")]
            labels = [systems[index] for index in np.atleast_1d(chosen)]
            selected = self.sel(system=labels if np.ndim(chosen) else labels[0])
        if not positions:
            return selected
        return _selected(super(ResultTree, selected).isel(positions, *args, **options), positions)

    @property
    def _is_result(self) -> bool:
        """Whether it is the root of a result of systems, and neither a group nor a part."""
        if self.parent is not None or not {"posterior", "observed_data"} <= {*self.children}:
            return False
        return "schema_version" in self.attrs and "system" in self["observed_data"].dims

    @property
    def tree(self) -> xr.DataTree:
        """The groups of the result as an ordinary DataTree."""
        return xr.DataTree.from_dict(self.to_dict(), name=self.name)

    @property
    def notes(self) -> list[str]:
        """What a reader of the numbers should know: assumptions, approximations and warnings."""
        from bayesatk.results.result import Result

        return Result.of(self).notes

    def __repr__(self, *_: Any) -> str:
        lines = [] if self.parent is not None else _lines(self)
        return "\n".join(lines) if lines else str(super().__repr__())

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the lines, then the groups."""
        lines = [] if self.parent is not None else _lines(self)
        groups = str(super()._repr_html_())  # type: ignore[no-untyped-call]
        return f"<pre>{escape(chr(10).join(lines))}</pre>" * bool(lines) + groups


def _selected(tree: xr.DataTree, labels: Mapping[Any, Any]) -> xr.DataTree:
    """Return a selection: a result where only chains and draws are fewer, else its numbers."""
    one = {
        name
        for name, label in labels.items()
        if not isinstance(label, slice) and not np.ndim(label)
    }
    taken = [str(name) for name in labels if name in one or name not in ("chain", "draw")]
    if not taken:
        return tree
    part = xr.DataTree.from_dict(tree.to_dict(), name=tree.name)
    part.attrs = {name: value for name, value in tree.attrs.items() if name != "schema_version"}
    part.attrs["selected"] = ", ".join(taken)
    return part


def _lines(tree: xr.DataTree) -> list[str]:
    """Return what was evaluated and how, the newest table, and what to call next."""
    import bayesatk

    evaluated = bool(tree.attrs.get("study")) and "posterior" in tree.children
    if evaluated and "system" not in tree["posterior"].dims:  # of one system, for ArviZ
        return []
    if "schema_version" not in tree.attrs or not (evaluated or "latest" in tree.attrs):
        return []
    table = bayesatk.table(tree)
    latest, lines, calls = table.attrs["analysis"], [], []
    if evaluated:
        fit = bayesatk.Result.of(tree)
        systems, questions = fit.trials.shape
        lines.append(
            f"{systems} system{'s' * (systems > 1)} x {questions} question{'s' * (questions > 1)}, "
            f"{fit.trials.sum():,} trials; "
            + " ".join(metric.label for metric in (*fit.metrics, *fit.costs))
        )
        model = "draws of your own model" if fit.own else f"pooling={fit.pooling}; {fit.method}"
        lines.append(f"{model}; {100 * fit.ci_prob:g}% intervals")
        calls += ["bayesatk.table(fit, 'results')"] * (latest != "results")
        calls += ["bayesatk.compare(fit)"] * (systems > 1 and "comparison" not in tree.children)
        calls.append("bayesatk.report(fit, 'report.html')")
    return [*lines, *str(table).splitlines(), f"Next: {', '.join([*calls, 'fit.tree'])}"]

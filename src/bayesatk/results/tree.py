"""A result as a DataTree that prints as a person reads it."""

import json
from dataclasses import replace
from typing import Any

import xarray as xr

_FIRST_ROWS, _MOST_LINES = 4, 9


class ResultTree(xr.DataTree):  # type: ignore[no-untyped-call]
    """A result: a DataTree, which prints ten lines. ``print(fit.tree)`` shows all groups.

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
        others) see observations along one dimension, the questions.

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
        >>> fit = bayesatk.evaluate(runs, "bayes", pooling="none", rng=1)
        >>> fit.sel(system=["a", "c"])["posterior"]["system"].values.tolist()
        ['a', 'c']
        >>> fit.sel(system="b")["observed_data"]["successes"].values.tolist()
        [2]
        """
        from bayesatk.results.result import Result
        from bayesatk.results.selection import systems_of

        chosen = {**(indexers or {}), **kwargs}
        if "system" not in chosen or self.parent is not None or "posterior" not in self.children:
            return super().sel(indexers, *args, **kwargs)
        selected = systems_of(Result.of(self), chosen.pop("system"))
        return selected.sel(chosen, *args) if chosen else selected

    @property
    def tree(self) -> xr.DataTree:
        """The same groups as an ordinary DataTree."""
        return xr.DataTree.from_dict(self.to_dict(), name=self.name)

    def __repr__(self, *_: Any) -> str:
        lines = [] if self.parent is not None else _lines(self)
        return "\n".join(lines) if lines else str(super().__repr__())

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the lines, then the groups."""
        from html import escape

        lines = [] if self.parent is not None else _lines(self)
        groups = str(super()._repr_html_())  # type: ignore[no-untyped-call]
        return f"<pre>{escape(chr(10).join(lines))}</pre>" * bool(lines) + groups


def _lines(tree: xr.DataTree) -> list[str]:
    """Return what was evaluated, how, the first rows, and what to do next."""
    from bayesatk.results.result import Result, analyses_of, analysis_table
    from bayesatk.results.tables import result_table
    from bayesatk.results.views import view

    analyses = analyses_of(tree)
    evaluated = bool(tree.attrs.get("study")) and "posterior" in tree.children
    if "schema_version" not in tree.attrs or not (evaluated or analyses):
        return []
    sizes = tree["constant_data"].sizes if "constant_data" in tree.children else {}
    if evaluated and "system" not in tree["posterior"].dims:  # of one system, for ArviZ
        return []
    systems, lines = sizes.get("system", 0), []
    if sizes:
        trials = int(tree["constant_data"]["trials"].sum())
        lines.append(
            f"{systems} system{'s' * (systems > 1)} x {sizes['question']} "
            f"question{'s' * (sizes['question'] > 1)}, {trials:,} trials"
        )
    if evaluated:
        fit = Result.of(tree)
        lines[0] += f"; {' '.join(metric.label for metric in (*fit.metrics, *fit.costs))}"
        model = "draws of your own model" if fit.own else f"pooling={fit.pooling}; {fit.method}"
        lines.append(f"{model}; {100 * fit.ci_prob:g}% intervals")
        shown = view(result_table(fit), "results")
        lines += replace(shown, title="").text(most=_FIRST_ROWS).splitlines()
        if len(shown.rows) > _FIRST_ROWS:
            lines[-1] += ": bayesatk.table(fit)"
    else:
        lines += str(analysis_table(tree, analyses[0])).splitlines()[:_MOST_LINES]
    return [*lines, f"Next: {', '.join(_next(tree, evaluated, analyses, systems))}"]


def _next(tree: xr.DataTree, evaluated: bool, analyses: list[str], systems: int) -> list[str]:
    """Return calls that show or use the result."""
    notes = len(json.loads(str(tree.attrs.get("notes", "[]"))))
    calls = ["bayesatk.table(fit)"] * evaluated
    calls += [f"bayesatk.table(fit, {name!r})" for name in analyses]
    calls += [f"bayesatk.notes(fit) ({notes})"] if notes else []
    if evaluated and systems > 1:
        done = "comparison" in tree.children
        calls.append("bayesatk.table(fit, 'comparison')" if done else "bayesatk.compare(fit)")
    calls += ['bayesatk.report(fit, "report.html")'] * evaluated
    return [*calls, "fit.tree"]

"""Results as tables in files: JSON, CSV and LaTeX, each with its provenance."""

import csv
import json
import math
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from bayesatk._tools.words import probability_words
from bayesatk._tools.writing import replacing_text
from bayesatk.comparison.boards.board import leaderboard_rows
from bayesatk.comparison.checks.question_table import question_table
from bayesatk.comparison.pairs.systems import comparison_table
from bayesatk.costs.tables import cost_table
from bayesatk.guessing.baseline import baseline_table
from bayesatk.io.cells import defused
from bayesatk.io.every_eval_ever import every_eval_ever
from bayesatk.results.citations import citations
from bayesatk.results.result import Result
from bayesatk.results.schema import metric_values
from bayesatk.results.tables import category_table, coefficient_table, table
from bayesatk.verification.verify import Verification

Exportable = xr.DataTree | Result | Verification | pd.DataFrame


def tables_of(result: Exportable, *, questions: bool = False) -> dict[str, pd.DataFrame]:
    """Return every table of a result, by name.

    Parameters
    ----------
    result : xarray.DataTree, Verification or pandas.DataFrame
        From `bayesatk.evaluate`, `sample`, `compare`, `random_baseline`, `verify`, `plan` or
        `compare_models`.
    questions : bool
        Whether to compute `bayesatk.question_table` too, with a row per system and question.

    Returns
    -------
    dict of str to pandas.DataFrame
        ``results``; ``categories`` of scored categories; ``coefficients`` of covariates;
        ``leaderboard`` after ``leaderboard(fit).attached()``; ``comparison``, ``ranks`` and
        ``tiers`` after `compare`; ``baseline`` after `random_baseline`; ``questions`` if requested;
        ``verification``; ``table`` for a table that was given itself.

    See Also
    --------
    bayesatk.export : writes them to files.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate({"a": [[1, 0]], "b": [[1, 1]]}, "pass@1", pooling="none", rng=1)
    >>> list(tables_of(bayesatk.compare(fit, rng=1)))
    ['results', 'comparison', 'ranks', 'tiers']
    """
    if isinstance(result, pd.DataFrame):
        return {"table": result}
    if isinstance(result, Verification):
        return {"verification": result.table}
    fit = Result.of(result)
    tables = {"results": pd.DataFrame(table(fit))}
    optional_tables: tuple[tuple[str, bool, Callable[[Result], pd.DataFrame]], ...] = (
        ("categories", "reach_probability" in fit.posterior, category_table),
        ("coefficients", fit.covariates is not None, coefficient_table),
        ("costs", fit.of_costs, cost_table),
        ("leaderboard", fit.has("leaderboard"), leaderboard_rows),
        ("groups", fit.grouping is not None, partial(table, by="group")),
        ("group_comparison", fit.has("group_comparison"), partial(comparison_table, by="group")),
    )
    tables |= {
        name: pd.DataFrame(tabulated(fit))
        for name, available, tabulated in optional_tables
        if available
    }
    if fit.has("comparison"):
        tables["comparison"] = comparison_table(fit)
        if fit.group("ranks").attrs["ranked_on"]:
            tables["ranks"] = _by_system(fit, "ranks")
            tables["tiers"] = _by_system(fit, "tiers")
    if fit.has("random_baseline"):
        tables["baseline"] = baseline_table(fit)
    if questions:
        tables["questions"] = question_table(fit)
    return tables


def _by_system(result: Result, group: str) -> pd.DataFrame:
    """Tabulate ranks or tiers: one row per system, metric and target."""
    dataset = result.group(group)
    rows: list[dict[str, Any]] = []
    for metric in result.metrics:
        values = metric_values(dataset, metric)
        for system in values["system"].values.tolist():
            for target in result.targets:
                rank_or_tier = values.sel(system=system, target=target)
                row = {"system": system, "metric": metric.label, "target": target}
                if group == "tiers":
                    rows.append(row | {"tier": int(rank_or_tier)})
                    continue
                chances = dict(
                    zip(
                        rank_or_tier["rank"].values.tolist(),
                        rank_or_tier.values.tolist(),
                        strict=True,
                    )
                )
                rows.append(
                    row
                    | {"expected_rank": sum(rank * p for rank, p in chances.items())}
                    | {f"prob_rank_{rank}": p for rank, p in chances.items()}
                )
    return pd.DataFrame(rows)


def provenance(result: object = None) -> dict[str, Any]:
    """Return the provenance of a result, in a form that JSON can store.

    Parameters
    ----------
    result : xarray.DataTree, optional
        Default: versions and command only.

    Returns
    -------
    dict
        ``input_sha256`` of the counts, ``input_files`` with the SHA-256 of each, ``metrics``,
        ``method``, ``pooling``, ``prior``, ``seed``, ``missing_policy``, ``assumptions``,
        ``notes``, ``versions``, ``created_at``, ``citations`` and ``command``: the command line,
        if there was one.

    See Also
    --------
    bayesatk.cite : BibTeX of the methods.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate([[1, 0], [1, 1]], "pass@1", rng=1)
    >>> origin = provenance(fit)
    >>> origin["seed"], origin["pooling"], len(origin["input_sha256"])
    ('1', 'partial', 64)
    """
    origin: dict[str, Any] = {"versions": {"bayesatk": version("bayesatk")}, "command": _command()}
    if not isinstance(result, xr.DataTree | Result):
        return origin
    fit = Result.of(result)
    attrs = fit.tree.attrs
    for name in ("method", "seed", "missing_policy", "created_at", "input_sha256"):
        origin[name] = attrs.get(name)
    for name in ("assumptions", "versions", "input_files"):
        origin[name] = fit.described(name, None)
    study = fit.described("study", {})
    for name in ("metrics", "pooling", "prior", "ci_prob", "ci_kind"):
        origin[name] = study.get(name)
    if fit.weight is not None:
        origin["weights_of_questions"] = f"{fit.weight.min():.4g} to {fit.weight.max():.4g}"
    return {**origin, "notes": fit.notes, "citations": citations(fit)}


def _command() -> str | None:
    """Return the command line that made this process, if it was bayesatk's own."""
    name = Path(sys.argv[0]).name if sys.argv else ""
    return shlex.join([name, *sys.argv[1:]]) if name == "bayesatk" else None


def as_json(result: Exportable, *, questions: bool = False) -> dict[str, Any]:
    """Return all tables of a result with their provenance, as JSON keeps them.

    NaN becomes null, infinity the text "inf" or "-inf".
    """
    tables = tables_of(result, questions=questions)
    document: dict[str, Any] = {
        "schema": "bayesatk-tables/1",
        "provenance": provenance(result),
        "tables": {name: _records(frame) for name, frame in tables.items()},
    }
    if isinstance(result, Verification):
        document |= {"verdict": result.verdict, "family_error": result.family_error}
    return document


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(name): _cell(value) for name, value in row.items()} for row in frame.to_dict("records")
    ]


def _cell(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def export(
    result: Exportable,
    path: str | Path,
    *,
    table: str | None = None,
) -> Path:
    r"""Write tables of a result: ``.json`` (all), ``.csv`` or ``.tex`` (one), with provenance.

    Parameters
    ----------
    result : xarray.DataTree, Verification or pandas.DataFrame
        As for `tables_of`.
    path : path
        An existing file is replaced once everything is written. A CSV file begins with the
        provenance, in lines that start with ``#``. Its text is quoted, so that
        ``pandas.read_csv(path, comment="#")`` reads the table, and text that a spreadsheet would
        run as a formula begins with an apostrophe. LaTeX is a ``tabular`` for booktabs with
        rounded numbers and intervals in brackets; its provenance, and the sentences of
        `bayesatk.claim`, are comments. docs/schema.md describes the JSON. A name that ends in
        ``eee.json`` gives a document of Every Eval Ever, schema 0.3: each metric of one system
        with its uncertainty.
    table : str, optional
        Table to write as CSV or LaTeX; default: the first one. ``"questions"`` is computed only if
        it is named here, for JSON too.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    ValueError
        For another ending, or for a table that the result does not have.

    See Also
    --------
    bayesatk.save : the whole result.
    bayesatk.tables_of : the tables as data frames.

    Examples
    --------
    >>> import bayesatk, tempfile, pathlib
    >>> fit = bayesatk.evaluate([[1, 0], [1, 1]], "pass@1", rng=1)
    >>> path = export(fit, pathlib.Path(tempfile.mkdtemp()) / "fit.csv")
    >>> pd.read_csv(path, comment="#")["metric"].tolist()
    ['pass@1', 'pass@1']
    """
    path = Path(path)
    if path.suffix not in (".json", ".csv", ".tex"):
        raise ValueError(
            f"path must end in .json, .csv, .tex; got {path.name!r}. Whole results go to .nc "
            "or .zarr: bayesatk.save."
        )
    if path.name.endswith("eee.json"):
        document = every_eval_ever(Result.of(result))  # type: ignore[arg-type]
        with replacing_text(path) as file:
            file.write(json.dumps(document, indent=2, allow_nan=False) + "\n")
        return path
    with_questions = table == "questions"
    tables = tables_of(result, questions=with_questions)
    name = next(iter(tables)) if table is None else table
    if name not in tables:
        raise ValueError(f"table must be one of {', '.join(tables)}; got {table!r}.")
    if path.suffix == ".json":
        if table is not None and not with_questions:
            raise ValueError(f"table must be left out for .json, which holds all; got {table!r}.")
        text = (
            json.dumps(as_json(result, questions=with_questions), indent=2, allow_nan=False) + "\n"
        )
    else:
        origin = [f"{key}: {json.dumps(value)}" for key, value in provenance(result).items()]
        written = as_csv if path.suffix == ".csv" else _as_latex
        text = written(tables[name], origin)
    with replacing_text(path) as file:
        file.write(text)
    return path


def as_csv(frame: pd.DataFrame, origin: Sequence[str] = ()) -> str:
    """Return a table as CSV below where it comes from."""
    text = frame.rename(columns=defused).map(defused)
    table = text.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC)
    return "".join(f"# {line}\n" for line in origin) + table


# What has a meaning in LaTeX, or is printed as another sign by its usual encoding.
_SIGNS = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {
        "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
        "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    }
    | dict.fromkeys(map(chr, [*range(32), 127]), "?")
)  # fmt: skip


def latex_text(text: str) -> str:
    r"""Return text as LaTeX prints it.

    Examples
    --------
    >>> print(latex_text("50% <x_1> a--b"))
    50\% \textless{}x\_1\textgreater{} a-{}-b
    """
    return text.translate(_SIGNS).replace("--", "-{}-").replace("--", "-{}-")


def _as_latex(frame: pd.DataFrame, origin: Sequence[str]) -> str:
    """Return a table as a LaTeX ``tabular`` below where it comes from, in comments."""
    shown = presentable(frame)
    cells = shown.map(latex_text).rename(columns=latex_text)
    # A bracket or star that begins a row would be an argument of the end of the row before.
    cells.isetitem(0, cells.iloc[:, 0].str.replace(r"^(?=[\[*])", "{}", regex=True).to_numpy())
    table = cells.to_latex(index=False, escape=False, column_format="l" * cells.shape[1])
    sentences = frame.get("sentence", pd.Series(dtype=str)).tolist()
    return "".join(f"% {' '.join(str(line).split())}\n" for line in [*origin, *sentences]) + table


def presentable(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table as people print it: rounded, intervals in brackets, no technical columns.

    Examples
    --------
    >>> frame = pd.DataFrame({"mean": [0.51234], "ci_lower": [0.4], "ci_upper": [0.61]})
    >>> presentable(frame).iloc[0].to_dict()
    {'mean': '0.512', 'interval': '[0.400, 0.610]'}
    """
    technical = ("ci_error", "variance_trial", "variance_question", "monte_carlo_error", "sentence")
    columns: dict[str, list[str]] = {}
    error = frame.get("monte_carlo_error")
    for name in frame.columns:
        stem = str(name).removesuffix("_lower")
        if str(name).endswith("_lower") and f"{stem}_upper" in frame:
            ends = zip(frame[name], frame[f"{stem}_upper"], strict=True)
            label = "interval" if stem == "ci" else f"{stem} interval".replace("_", " ")
            columns[label] = [f"[{_rounded(low)}, {_rounded(high)}]" for low, high in ends]
        elif str(name).startswith("prob_") and error is not None:
            pairs = zip(frame[name], error, strict=True)
            columns[str(name).replace("_", " ")] = [
                probability_words(*probability_and_error) for probability_and_error in pairs
            ]
        elif name == "p_value":
            shown = ["" if math.isnan(value) else f"{value:.2g}" for value in frame[name]]
            columns["p value"] = shown
        elif not str(name).endswith("_upper") and name not in technical:
            columns[str(name).replace("_", " ")] = [_rounded(value) for value in frame[name]]
    return pd.DataFrame({name: cells for name, cells in columns.items() if any(cells)})


def _rounded(value: Any) -> str:
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        rounded = round(value, 3) + 0.0  # no minus before a zero
        return f"{rounded:.3f}" if abs(value) < 1000 else f"{value:.4g}"
    return " ".join(str(value).split())

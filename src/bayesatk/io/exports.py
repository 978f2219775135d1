"""Results in files: their tables as JSON with provenance, or one as CSV."""

import csv
import json
import math
import shlex
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from bayesatk._tools.writing import replacing_text
from bayesatk.comparison.checks.question_table import question_table
from bayesatk.comparison.pairs.systems import comparison_table
from bayesatk.guessing.baseline import baseline_table
from bayesatk.io.json_stream import Json
from bayesatk.io.record_tables import defused
from bayesatk.results.citations import citations
from bayesatk.results.result import Fit, Result, analyses_of, analysis_table
from bayesatk.results.tables import category_table, coefficient_table, result_table
from bayesatk.verification.verify import Verification


def tables_of(fit: Fit | Verification, *, questions: bool = False) -> dict[str, pd.DataFrame]:
    """Return every table of a result, by name; that of its questions if requested."""
    if isinstance(fit, Verification):
        return {"verification": fit.table.assign()}
    fit = Result.of(fit, None)
    evaluated = fit.has("posterior")
    tabulated: tuple[tuple[str, bool, Callable[[Result], pd.DataFrame]], ...] = (
        ("results", evaluated, result_table),
        ("categories", evaluated and "reach_probability" in fit.posterior, category_table),
        ("coefficients", fit.covariates is not None, coefficient_table),
        *((name, True, partial(analysis_table, name=name)) for name in analyses_of(fit.tree)),
        ("groups", fit.grouping is not None, partial(result_table, by="group")),
        ("group_comparison", fit.has("group_comparison"), partial(comparison_table, by="group")),
        ("comparison", fit.has("comparison"), comparison_table),
        ("baseline", fit.has("random_baseline"), baseline_table),
        ("questions", questions, question_table),
    )
    tables = {}
    for name, has, function in tabulated:
        if has:
            group = "random_baseline" if name == "baseline" else name
            attrs: dict[Any, Any] = {"ci_prob": fit.ci_prob} if evaluated else {}
            attrs |= fit.group(group).attrs if fit.has(group) else {}
            frame = function(fit)
            tables[name] = pd.DataFrame(frame)
            tables[name].attrs = {**attrs, **frame.attrs, "analysis": name}
    return tables


def provenance(fit: object = None) -> Json:
    """Return the provenance of a result, in a form that JSON can store.

    Parameters
    ----------
    fit : xarray.DataTree, optional
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
    origin = {"versions": {"bayesatk": version("bayesatk")}, "command": _command()}
    if not isinstance(fit, Fit):
        return origin
    fit = Result.of(fit, None)
    attrs = fit.tree.attrs
    for name in ("method", "seed", "missing_policy", "created_at", "input_sha256"):
        origin[name] = attrs.get(name)
    for name in ("assumptions", "versions", "input_files"):
        origin[name] = fit.described(name, None)
    study = fit.described("study", {})
    for name in ("metrics", "pooling", "prior", "population", "ci_prob", "ci_kind"):
        origin[name] = study.get(name)
    if fit.has("constant_data") and fit.weight is not None:
        origin["weights_of_questions"] = f"{fit.weight.min():.4g} to {fit.weight.max():.4g}"
    return {**origin, "notes": fit.notes, "citations": citations(fit)}


def _command() -> str | None:
    """Return the command line that made this process, if it was bayesatk's own."""
    name = Path(sys.argv[0]).name if sys.argv else ""
    return shlex.join([name, *sys.argv[1:]]) if name == "bayesatk" else None


def as_json(result: Fit | Verification, *, questions: bool = False) -> Json:
    """Return all tables of a result with their provenance, as JSON keeps them.

    NaN becomes null, infinity the text "inf" or "-inf".
    """
    document: Json = {
        "schema": "bayesatk-tables/1",
        "provenance": provenance(result),
        "tables": {
            name: [
                {str(column): _cell(value) for column, value in row.items()}
                for row in frame.to_dict("records")
            ]
            for name, frame in tables_of(result, questions=questions).items()
        },
    }
    if isinstance(result, Verification):
        document |= {"verdict": result.verdict, "alpha": result.alpha}
    return document


def _cell(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if isinstance(value, str | int | float | None) else str(value)


def as_csv(frame: pd.DataFrame) -> str:
    """Return a table as CSV, where no text is a formula of a spreadsheet."""
    text = frame.rename(columns=defused).map(defused)
    return text.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC)


def write_tables(fit: Fit | Verification, path: Path, name: str) -> None:
    """Write all tables of a result to ``.json``, or one of them to ``.csv``.

    An existing file is replaced once everything is written.
    """
    if path.suffix == ".json":
        text = json.dumps(as_json(fit), indent=2, allow_nan=False) + "\n"
    else:
        text = as_csv(tables_of(fit)[name])
    with replacing_text(path) as file:
        file.write(text)

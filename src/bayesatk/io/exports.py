"""Write tables of results: all as JSON with their provenance, or one as CSV."""

import csv
import json
import math
import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from bayesatk._tools.writing import replacing_text
from bayesatk.io.json_stream import Json
from bayesatk.io.named_tables import tables_of
from bayesatk.io.record_tables import defused
from bayesatk.results.citations import citations
from bayesatk.results.result import Fit, Result, latest_table
from bayesatk.verification.verify import Verification


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
    """Return the command line of this process if it is the command `bayesatk`."""
    name = Path(sys.argv[0]).name if sys.argv else ""
    return shlex.join([name, *sys.argv[1:]]) if name == "bayesatk" else None


def as_json(result: Fit | Verification, *, questions: bool = False) -> Json:
    """Return all tables of a result with their provenance as a JSON object.

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
    """Return a table as CSV in which no text is a formula for spreadsheets."""
    text = frame.rename(columns=defused).map(defused)
    return text.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC)


def write_tables(fit: Fit | Verification, path: Path) -> None:
    """Write all tables of a result to ``.json``, or that of its newest analysis to ``.csv``.

    An existing file is replaced once everything is written.
    """
    if path.suffix == ".json":
        text = json.dumps(as_json(fit), indent=2, allow_nan=False) + "\n"
    else:
        if isinstance(fit, Verification):
            name = "verification"
        else:
            name = latest_table(Result.of(fit, None).tree)
        text = as_csv(tables_of(fit)[name])
    with replacing_text(path) as file:
        file.write(text)

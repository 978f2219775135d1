"""Results in files: tables as JSON, CSV, LaTeX and Markdown, with provenance.

Also documents of Every Eval Ever: a score with its uncertainty, by system and metric.
"""

import csv
import json
import math
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesatk._tools.messages import ArgumentError
from bayesatk._tools.writing import replacing_text
from bayesatk.comparison.checks.question_table import question_table
from bayesatk.comparison.pairs.systems import comparison_table
from bayesatk.guessing.baseline import baseline_table
from bayesatk.io.json_stream import Json
from bayesatk.io.record_tables import defused
from bayesatk.results.citations import citations
from bayesatk.results.costs import MONEY, cost_table
from bayesatk.results.result import Fit, Result, analyses_of, analysis_table
from bayesatk.results.schema import metric_values
from bayesatk.results.tables import category_table, coefficient_table, table
from bayesatk.results.views import view
from bayesatk.verification.verify import Verification

ENDINGS = (".json", ".csv", ".tex", ".md")
Exportable = Fit | Verification | pd.DataFrame


def tables_of(fit: Exportable, *, questions: bool = False) -> dict[str, pd.DataFrame]:
    """Return every table of a result, by name.

    Parameters
    ----------
    fit : xarray.DataTree, Verification or pandas.DataFrame
        From `bayesatk.evaluate`, `sample`, `compare`, `random_baseline`, `verify`, `compare_models`
        or an analysis that adds a group.
    questions : bool
        Whether to compute `bayesatk.checks.question_table` too, with a row per system and question.

    Returns
    -------
    dict of str to pandas.DataFrame
        ``results``; ``categories`` of scored categories; ``coefficients`` of covariates;
        ``leaderboard``, ``gate`` and ``plan`` after the functions of
        these names; ``comparison``, ``ranks`` and
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
    if isinstance(fit, pd.DataFrame):
        return {"table": fit}
    if isinstance(fit, Verification):
        return {"verification": fit.table.assign()}
    fit = Result.of(fit, None)
    evaluated = fit.has("posterior")
    ranked = fit.has("comparison") and bool(fit.group("ranks").attrs["ranked_on"])
    tabulated: tuple[tuple[str, bool, Callable[[Result], pd.DataFrame]], ...] = (
        ("results", evaluated, table),
        ("categories", evaluated and "reach_probability" in fit.posterior, category_table),
        ("coefficients", fit.covariates is not None, coefficient_table),
        ("costs", fit.of_costs, cost_table),
        *((name, True, partial(analysis_table, name=name)) for name in analyses_of(fit.tree)),
        ("groups", fit.grouping is not None, partial(table, by="group")),
        ("group_comparison", fit.has("group_comparison"), partial(comparison_table, by="group")),
        ("comparison", fit.has("comparison"), comparison_table),
        ("ranks", ranked, partial(_by_system, group="ranks")),
        ("tiers", ranked, partial(_by_system, group="tiers")),
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


def _by_system(result: Result, group: str) -> pd.DataFrame:
    """Tabulate ranks or tiers: one row per system, metric and target."""
    rows = []
    for metric in result.metrics:
        values = metric_values(result.group(group), metric)
        for system, target in product(values["system"].values.tolist(), result.targets):
            cell = values.sel(system=system, target=target)
            row = {"system": system, "metric": metric.label, "target": target}
            if group == "tiers":
                rows.append(row | {"tier": int(cell)})
                continue
            chances = dict(zip(cell["rank"].values.tolist(), cell.values.tolist(), strict=True))
            row["expected_rank"] = sum(rank * chance for rank, chance in chances.items())
            rows.append(row | {f"prob_rank_{rank}": chance for rank, chance in chances.items()})
    return pd.DataFrame(rows)


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


def as_json(result: Exportable, *, questions: bool = False) -> Json:
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


def export(
    fit: Exportable,
    path: str | Path,
    *,
    table: str | None = None,
    columns: Sequence[str] | None = None,
) -> Path:
    r"""Write tables of a result: ``.json`` (all), ``.csv``, ``.tex`` or ``.md`` (one).

    Parameters
    ----------
    fit : xarray.DataTree, Verification or pandas.DataFrame
        As for `tables_of`.
    path : path
        An existing file is replaced once everything is written. CSV has every column, with all
        digits; ``pandas.read_csv(path)`` reads it, and text that a spreadsheet would run as a
        formula begins with an apostrophe. Its provenance is in a file beside it,
        ``NAME.csv.provenance.json``. LaTeX (a ``tabular`` for booktabs) and Markdown are for
        papers: numbers are rounded, intervals are in brackets, and columns that only files need
        are left out; their provenance, and the sentences of `bayesatk.claim`, are comments.
        docs/schema.md describes the JSON. A name that ends in ``eee.json`` gives a document of
        Every Eval Ever, schema 0.3: each metric with its uncertainty. Of several systems
        ``"{system}.eee.json"`` writes a file each.
    table : str, optional
        Table to write as CSV, LaTeX or Markdown; default: the first one. ``"questions"`` is
        computed only if it is named here, for JSON too.
    columns : sequence of str, optional
        Columns of that table, by their names in `tables_of`, in the order to write them;
        ``"ci_lower"`` and ``"ci_upper"`` together are the interval.

    Returns
    -------
    pathlib.Path
        The file, or the folder of one file for each system.

    Raises
    ------
    ValueError
        For another ending, or for a table or column that the result does not have.

    See Also
    --------
    bayesatk.save : the whole result.
    bayesatk.tables_of : the tables as data frames.

    Examples
    --------
    >>> import bayesatk, tempfile, pathlib
    >>> fit = bayesatk.evaluate([[1, 0], [1, 1]], "pass@1", rng=1)
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> pd.read_csv(export(fit, folder / "fit.csv"))["metric"].tolist()
    ['pass@1', 'pass@1']
    >>> path = export(fit, folder / "fit.md", columns=["metric", "target", "estimate"])
    >>> print(path.read_text().splitlines()[-2])
    | pass@1 | these | 0.750 |
    """
    path = Path(path)
    if path.suffix not in ENDINGS:
        raise ValueError(
            f"path must end in {', '.join(ENDINGS)}; got {path.name!r}. Whole results go to .nc "
            "or .zarr: bayesatk.save."
        )
    if path.name.endswith("eee.json"):
        return _write_every_eval_ever(every_eval_ever(Result.of(fit)), path)  # type: ignore[arg-type]
    if path.suffix == ".json":
        text = _json_of(fit, table, columns)
    else:
        frame = _chosen(tables_of(fit, questions=table == "questions"), table, columns)
        origin = provenance(fit)
        if path.suffix == ".csv":
            beside = path.with_name(f"{path.name}.provenance.json")
            with replacing_text(path) as file, replacing_text(beside) as described:
                file.write(as_csv(frame))
                described.write(_json_text(origin))
                file.flush()  # a full disk is an error before either is there
            return path
        text = _as_paper(frame, origin, path.suffix, columns is not None)
    with replacing_text(path) as file:
        file.write(text)
    return path


def _json_of(result: Exportable, table: str | None, columns: Sequence[str] | None) -> str:
    for name, value in (("table", table), ("columns", columns)):
        if value not in (None, "questions"):
            raise ValueError(f"{name} must be left out for .json, which holds all; got {value!r}.")
    return _json_text(as_json(result, questions=table == "questions"))


def _write_every_eval_ever(documents: dict[str, Json], path: Path) -> Path:
    """Write a file for each system, which ``{system}`` in the path names."""
    if "{system}" not in path.name and len(documents) > 1:
        raise ArgumentError(
            "path", " must have {system} in its name for Every Eval Ever, which has a "
            f"file for each model; the systems are {', '.join(documents)}. Write to "
            f"{str(path.with_name('{system}.eee.json'))!r}.",
        )  # fmt: skip
    texts = {
        path.with_name(path.name.replace("{system}", file_name(system))): _json_text(document)
        for system, document in documents.items()
    }
    if len(texts) < len(documents):
        raise ArgumentError(
            "fit", " must have systems whose names differ as file names, without signs "
            f"such as '/'; got {', '.join(documents)}. Rename some.",
        )  # fmt: skip
    for file_path, text in texts.items():
        with replacing_text(file_path) as file:
            file.write(text)
    return path if "{system}" not in path.name else path.parent


def _chosen(
    tables: dict[str, pd.DataFrame], table: str | None, columns: Sequence[str] | None
) -> pd.DataFrame:
    """Return the table to write, with the columns to write."""
    name = next(iter(tables)) if table is None else table
    if name not in tables:
        raise ValueError(f"table must be one of {', '.join(tables)}; got {table!r}.")
    frame = tables[name]
    listed = [columns] if isinstance(columns, str) else list(columns or ())
    unknown = [column for column in listed if column not in frame]
    if unknown or isinstance(columns, str):
        raise ArgumentError(
            "columns", f" must be a list of columns of the table {name!r}, from "
            f"{', '.join(map(str, frame))}; got {', '.join(unknown or listed)}.",
        )  # fmt: skip
    return frame if columns is None else frame[list(columns)]


def _json_text(document: Json) -> str:
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def as_csv(frame: pd.DataFrame) -> str:
    """Return a table as CSV."""
    text = frame.rename(columns=defused).map(defused)
    return text.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC)


def _as_paper(frame: pd.DataFrame, origin: Json, ending: str, chosen: bool) -> str:
    """Return a table as LaTeX or Markdown below where it comes from, in comments."""
    shown = view(frame, chosen=chosen)
    lines = [f"{key}: {json.dumps(value)}" for key, value in origin.items()]
    lines = [" ".join(line.split()) for line in [*lines, *shown.sentences]]
    if ending == ".tex":
        return "".join(f"% {line}\n" for line in lines) + shown.latex()
    comment = "\n".join(lines).replace("--", "- -")
    return f"<!--\n{comment}\n-->\n\n{shown.markdown()}"


_MEANING = {
    "questions": "of the questions that were asked",
    "population": "of questions like those that were asked",
    "new_groups": "of questions of new groups",
}
# What identifies a row, and what the schema has a field for; other columns are details.
_PLACED = {
    "system", "group", "questions", "metric", "quantity", "k", "budget", "unit", "target",
    "estimate", "mean", "sd", "ci_lower", "ci_upper",
}  # fmt: skip


def every_eval_ever(result: Result) -> dict[str, Json]:
    """Return an aggregate record of Every Eval Ever for each system.

    The schema (version 0.3) has one document for one model, and for each of its results a score
    with a standard error and an interval. A metric gives a result for each target, and with groups
    for each group; costs give one for each quantity. The score is the unbiased estimate where all
    questions have it, and otherwise the posterior mean. What JSON has no number for (a mean that
    does not exist) is left out and named in ``eval_library.additional_details``.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate({"org/m": [[1, 0], [1, 1]]}, "pass@1", pooling="none", rng=1)
    >>> document = every_eval_ever(Result.of(fit))["org/m"]
    >>> document["model_info"]["id"], document["evaluation_results"][0]["score_details"]["score"]
    ('org/m', 0.75)
    """
    tables = [cost_table(result) if result.of_costs else table(result)]
    if result.grouping is not None and not result.of_costs:
        tables.append(table(result, by="group"))
    return {
        str(system): _document(
            result,
            position,
            [
                {str(column): value for column, value in row.items()}
                for frame in tables
                for row in frame[frame["system"] == system].to_dict("records")
            ],
        )
        for position, system in enumerate(result.systems)
    }


def _document(result: Result, position: int, rows: list[Json]) -> Json:
    """Return the record of one system."""
    system = str(result.systems[position])
    created = str(result.tree.attrs.get("created_at", ""))
    seconds = str(int(pd.Timestamp(created).timestamp())) if created else "0"
    entries = {_label(row): _entry(result, position, row) for row in rows}
    undefined = [label for label, entry in entries.items() if entry is None]
    library: Json = {"name": "bayesatk", "version": version("bayesatk")}
    if undefined:
        library["additional_details"] = {"without_a_finite_score": ", ".join(undefined)}
    # What a result does not know of its model and its source, in the words of the schema.
    unknown = {"deployment_type": "unknown", "model_availability": "unknown"}
    model = {"name": system, "id": system, "additional_details": unknown}
    developer, named, _ = system.partition("/")
    return {
        "schema_version": "0.3.0",
        "evaluation_id": f"bayesatk/{system}/{seconds}",
        "retrieved_timestamp": seconds,
        "source_metadata": {
            "source_type": "evaluation_run", "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": library,
        "model_info": model | ({"developer": developer} if named else {}),
        "evaluation_results": [entry for entry in entries.values() if entry is not None],
    }  # fmt: skip


def _metric(row: Json) -> str:
    """Name a metric, or a quantity of costs with its k or budget."""
    if "metric" in row:
        return str(row["metric"])
    level = [f"{name}={row[name]:g}" for name in ("k", "budget") if not math.isnan(row[name])]
    return " ".join([row["quantity"], *level])


def _label(row: Json) -> str:
    group = [f"group={row['group']}"] if "group" in row else []
    return "/".join([_metric(row), str(row["target"]), *group])


def _entry(result: Result, position: int, row: Json) -> Json | None:
    """Return one metric for one target, and group; None if it has no finite score."""
    target, meaning = str(row["target"]), _MEANING[str(row["target"])]
    of_all = row.get("estimate_questions") == row.get("tried_questions")
    observed = target == "questions" and of_all and math.isfinite(row["estimate"])
    score = row["estimate"] if observed else row["mean"]
    if not math.isfinite(score):
        return None
    group = f" of the group {row['group']}" if "group" in row else ""
    weighted = "" if result.weight is None else ", questions weighted"
    names = [name for name, *_ in result.described("input_files", None) or []]
    details = {
        "score_is": "unbiased estimate" if observed else "posterior mean",
        "posterior_mean": repr(row["mean"]), "target": target,
        "input_sha256": str(result.tree.attrs.get("input_sha256", "")),
    }  # fmt: skip
    further_columns = {name: value for name, value in row.items() if name not in _PLACED}
    details |= {
        name: repr(value) for name, value in further_columns.items() if not math.isnan(value)
    }
    return {
        "evaluation_result_id": _label(row),
        "evaluation_name": _metric(row),
        "source_data": {"dataset_name": ", ".join(map(str, names)) or "unknown",
                        "source_type": "other"},
        "metric_config": {
            "evaluation_description": f"{_metric(row)} {meaning}{group}{weighted}",
            "metric_name": _metric(row), **_scale(result, row),
        },
        "score_details": {
            "score": score, "details": details, "uncertainty": _uncertainty(result, position, row),
        },
    }  # fmt: skip


def _scale(result: Result, row: Json) -> Json:
    """Return parameters, direction and ends of a metric; money has no upper end."""
    parameters: dict[str, float] = {name: row[name] for name in ("k", "budget") if name in row}
    metric = next((metric for metric in result.metrics if metric.label == row.get("metric")), None)
    if metric is not None:
        parameters = {"k": metric.k} if metric.family.has_k else {}
        parameters |= {} if metric.tau is None else {"tau": metric.tau}
    stated_parameters = {name: value for name, value in parameters.items() if not math.isnan(value)}
    config: Json = {"metric_parameters": stated_parameters, "lower_is_better": False}
    if row.get("quantity") in MONEY:
        return config | {"lower_is_better": True, "metric_unit": row["unit"]}
    if row.get("quantity") == "tries_at_budget":
        return config
    low, high = float(result.scores.min()), float(result.scores.max())
    if (low, high) == (0.0, 1.0):
        return config | {"score_type": "continuous", "min_score": low, "max_score": high}
    # Of other numbers only those that were read are known.
    details = {"scores_read": f"{low:g} to {high:g}"}
    return config | {"lower_is_better": result.data.direction < 0, "additional_details": details}


def _uncertainty(result: Result, position: int, row: Json) -> Json:
    """Return the posterior's sd and interval, with the number of questions they are from."""
    target = str(row["target"])
    drawn = f"; {result.study.population_words}" if target == "population" else ""
    source = "draws of the posterior" if result.sampled else "posterior"
    method = f"{source} {_MEANING[target]}{drawn}; pooling {result.pooling}; {result.method}"
    kind = "highest density" if result.ci_kind == "hdi" else "equal-tailed"
    tried = result.trials[position] > 0
    if "group" in row and result.grouping is not None:
        tried = tried & (np.asarray(result.grouping.labels)[result.grouping.code] == row["group"])
    uncertainty: Json = {"num_samples": int(tried.sum())}
    if math.isfinite(row["sd"]):
        uncertainty["standard_error"] = {"value": row["sd"], "method": f"sd of the {method}"}
    if math.isfinite(row["ci_lower"]) and math.isfinite(row["ci_upper"]):
        uncertainty["confidence_interval"] = {
            "lower": row["ci_lower"], "upper": row["ci_upper"],
            "confidence_level": result.ci_prob,
            "method": f"{kind} credible interval of the {method}",
        }  # fmt: skip
    return uncertainty


def file_name(system: str) -> str:
    """Return a part of a file name from the name of a system, without folders.

    Examples
    --------
    >>> file_name("org/m 1"), file_name("../x")
    ('org_m_1', '.._x')
    """
    return re.sub(r"[^\w.-]", "_", system)

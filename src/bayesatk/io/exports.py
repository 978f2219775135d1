"""Results in files: tables as JSON, CSV and LaTeX with their provenance; Every Eval Ever."""

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

import pandas as pd
import xarray as xr

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk._tools.words import probability_words
from bayesatk._tools.writing import replacing_text
from bayesatk.comparison.checks.question_table import question_table
from bayesatk.comparison.pairs.systems import comparison_table
from bayesatk.costs.tables import cost_table
from bayesatk.guessing.baseline import baseline_table
from bayesatk.io.text_tables import defused
from bayesatk.results.analyses import analyses_of, analysis_table
from bayesatk.results.citations import citations
from bayesatk.results.result import Result
from bayesatk.results.schema import metric_values
from bayesatk.results.tables import category_table, coefficient_table, table
from bayesatk.verification.verify import Verification

Exportable = xr.DataTree | Result | Verification | pd.DataFrame


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
        ``leaderboard``, ``gate``, ``horizon``, ``change_point`` and ``plan`` after the functions of
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
        return {"verification": fit.table}
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
    return {name: pd.DataFrame(function(fit)) for name, has, function in tabulated if has}


def _by_system(result: Result, group: str) -> pd.DataFrame:
    """Tabulate ranks or tiers: one row per system, metric and target."""
    rows: list[dict[str, Any]] = []
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


def provenance(fit: object = None) -> dict[str, Any]:
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
    origin: dict[str, Any] = {"versions": {"bayesatk": version("bayesatk")}, "command": _command()}
    if not isinstance(fit, xr.DataTree | Result):
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


def as_json(result: Exportable, *, questions: bool = False) -> dict[str, Any]:
    """Return all tables of a result with their provenance, as JSON keeps them.

    NaN becomes null, infinity the text "inf" or "-inf".
    """
    document: dict[str, Any] = {
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
) -> Path:
    r"""Write tables of a result: ``.json`` (all), ``.csv`` or ``.tex`` (one), with provenance.

    Parameters
    ----------
    fit : xarray.DataTree, Verification or pandas.DataFrame
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
    with_questions = table == "questions"
    if path.name.endswith("eee.json"):
        text = _json_text(every_eval_ever(Result.of(fit)))  # type: ignore[arg-type]
    elif path.suffix == ".json":
        if table is not None and not with_questions:
            raise ValueError(f"table must be left out for .json, which holds all; got {table!r}.")
        text = _json_text(as_json(fit, questions=with_questions))
    else:
        tables = tables_of(fit, questions=with_questions)
        name = next(iter(tables)) if table is None else table
        if name not in tables:
            raise ValueError(f"table must be one of {', '.join(tables)}; got {table!r}.")
        origin = [f"{key}: {json.dumps(value)}" for key, value in provenance(fit).items()]
        text = (as_csv if path.suffix == ".csv" else _as_latex)(tables[name], origin)
    with replacing_text(path) as file:
        file.write(text)
    return path


def _json_text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


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
    for name, values in frame.items():
        label = str(name).replace("_", " ")
        stem = str(name).removesuffix("_lower")
        upper = frame.get(f"{stem}_upper")
        if stem != name and upper is not None:
            label = "interval" if stem == "ci" else label.removesuffix("lower") + "interval"
            ends = zip(map(_rounded, values), map(_rounded, upper), strict=True)
            columns[label] = [f"[{low}, {high}]" for low, high in ends]
        elif label.startswith("prob ") and error is not None:
            columns[label] = list(map(probability_words, values, error))
        elif name == "p_value":
            columns[label] = ["" if math.isnan(value) else f"{value:.2g}" for value in values]
        elif not label.endswith(" upper") and name not in technical:
            columns[label] = list(map(_rounded, values))
    return pd.DataFrame({name: cells for name, cells in columns.items() if any(cells)})


def _rounded(value: Any) -> str:
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        rounded = round(value, 3) + 0.0  # no minus before a zero
        return f"{rounded:.3f}" if abs(value) < 1000 else f"{value:.4g}"
    return " ".join(str(value).split())


def every_eval_ever(result: Result) -> dict[str, Any]:
    """Return a result of one system as an aggregate record of Every Eval Ever.

    The schema (version 0.3) has one document for one model, and for each of its results a score
    with a standard error and an interval. A metric gives two results, one for each target: of these
    questions, and of questions like them.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate({"org/m": [[1, 0], [1, 1]]}, "pass@1", pooling="none", rng=1)
    >>> document = every_eval_ever(Result.of(fit))
    >>> document["model_info"]["id"], document["evaluation_results"][0]["score_details"]["score"]
    ('org/m', 0.75)
    """
    frame = table(result)
    systems = [str(name) for name in frame["system"].unique()]
    if len(systems) != 1:
        raise ArgumentError(
            Argument("fit"), " must be of one system for Every Eval Ever, which has a file for "
            f"each model; got {', '.join(systems)}. Evaluate the systems one by one.",
        )  # fmt: skip
    created = str(result.tree.attrs.get("created_at", ""))
    seconds = str(int(pd.Timestamp(created).timestamp())) if created else "0"
    # What a result does not know of its model and its source, in the words of the schema.
    unknown = {"deployment_type": "unknown", "model_availability": "unknown"}
    return {
        "schema_version": "0.3.0",
        "evaluation_id": f"bayesatk/{systems[0]}/{seconds}",
        "retrieved_timestamp": seconds,
        "source_metadata": {
            "source_type": "evaluation_run", "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "bayesatk", "version": version("bayesatk")},
        "model_info": {"name": systems[0], "id": systems[0], "additional_details": unknown},
        "evaluation_results": [_entry(result, row) for row in frame.to_dict("records")],
    }  # fmt: skip


def _entry(result: Result, row: dict[Any, Any]) -> dict[str, Any]:
    """Return one metric for one target."""
    attrs, metric, target = result.tree.attrs, str(row["metric"]), str(row["target"])
    k = re.search(r"[@^](\d+)", metric)
    of_all = row.get("estimate_questions") == row.get("tried_questions")
    observed = target == "questions" and of_all and not math.isnan(row["estimate"])
    weighted = "" if result.weight is None else ", questions weighted"
    kind = "highest density" if result.ci_kind == "hdi" else "equal-tailed"
    like = "the questions" if target == "questions" else "questions like those"
    meaning = f"of {like} that were asked"
    drawn = f"; {result.study.population_words}" if target == "population" else ""
    method = f"posterior {meaning}{drawn}; pooling {result.pooling}"
    names = [name for name, *_ in result.described("input_files", None) or []]
    return {
        "evaluation_result_id": f"{metric}/{target}",
        "evaluation_name": metric,
        "source_data": {"dataset_name": ", ".join(map(str, names)) or "unknown",
                        "source_type": "other"},
        "metric_config": {
            "evaluation_description": f"{metric} {meaning}{weighted}",
            "metric_name": metric,
            "metric_parameters": {"k": int(k[1])} if k else {},
            "lower_is_better": False,
        },
        "score_details": {
            "score": row["estimate"] if observed else row["mean"],
            "details": {
                "score_is": "unbiased estimate" if observed else "posterior mean",
                "posterior_mean": repr(row["mean"]), "target": target,
                "input_sha256": str(attrs.get("input_sha256", "")),
            },
            "uncertainty": {
                "standard_error": {"value": row["sd"], "method": f"sd of the {method}"},
                "confidence_interval": {
                    "lower": row["ci_lower"], "upper": row["ci_upper"],
                    "confidence_level": result.ci_prob,
                    "method": f"{kind} credible interval of the {method}",
                },
                "num_samples": int(result.group("constant_data").sizes["question"]),
            },
        },
    }  # fmt: skip

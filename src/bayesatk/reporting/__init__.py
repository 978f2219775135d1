"""`report`: one self-contained HTML page, for readers who never saw the library."""

import base64
import gzip
import hashlib
import json
from dataclasses import astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.packages import REPORT, require
from bayesatk._tools.words import printable
from bayesatk._tools.writing import replacing_text
from bayesatk.comparison.boards.leaderboard import leaderboard
from bayesatk.comparison.checks.criticism import criticise
from bayesatk.comparison.pairs.systems import compare
from bayesatk.comparison.pairs.verdicts import design_words
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.study import Study, text_of_systems
from bayesatk.io.exports import as_csv, as_json, provenance
from bayesatk.io.named_tables import tables_of
from bayesatk.priors.counts import HyperPrior
from bayesatk.reporting.pictures import pictures
from bayesatk.reporting.sentences import (
    GROUPED_TARGETS,
    POOLINGS,
    TARGETS,
    claims,
    has_question_laws,
    in_order,
    levels,
    method_sentences,
    question_sentences,
    scores,
    statistics_sentence,
)
from bayesatk.results.citations import cite
from bayesatk.results.question_laws import declared_fields
from bayesatk.results.result import Fit, Result
from bayesatk.results.views import view
from bayesatk.verification.verify import Verification

_LONG = 100_000  # bytes from which a file in the page is compressed


def report(
    fit: Fit,
    path: str | Path = "report.html",
    *,
    data: Outcomes | None = None,
    verification: Verification | None = None,
    guess: object = None,
    title: str = "Evaluation report",
    client: Any = None,
) -> Path:
    """Write a page with claims, tables, plots, data card, methods and provenance.

    The page is one file that fetches nothing: plots are drawn into it, tables sort on a click, it
    follows the reader's light or dark setting, and prints. Names of systems and questions are
    shown as text, whatever they hold.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`. Systems are compared if they have not been;
        after `bayesatk.guessing.random_baseline` the page has the guessers too.
    path : path, default "report.html"
        Of the page, ``.html``; an existing file is replaced once all is written.
    data : Outcomes, optional
        What was evaluated, for the data card.
    verification : Verification, optional
        From `bayesatk.verify`.
    guess : optional
        The probabilities of guessing that `bayesatk.guessing.random_baseline` was given, for its
        plot.
    title : str
        Heading of the page.
    client : dask.distributed.Client, optional
        Weigh the difficulty families of every system there (`bayesatk.checks.criticise`), which
        takes longest of the numbers on a page; the page is the same.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    ValueError
        If `path` has another ending.
    ImportError
        If matplotlib is missing: ``pip install matplotlib``.

    See Also
    --------
    bayesatk.claim : the sentences of the report.

    Examples
    --------
    >>> import bayesatk, tempfile, pathlib
    >>> fit = bayesatk.evaluate([[1, 0, 1], [1, 1, 1]], "pass@1,2", rng=1)
    >>> path = report(fit, pathlib.Path(tempfile.mkdtemp()) / "report.html")
    >>> path.read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    require(*REPORT)
    path = Path(path)
    if path.suffix not in (".html", ".htm"):
        raise ValueError(f"path must end in .html; got {path.name!r}.")
    # In the order of the data, which the colours of plots are of.
    drawn = _compared(_with_scores(Result.of(fit)))
    fit = _in_order(drawn, in_order(drawn))
    template, script = _template()
    numbers = as_json(fit, questions=has_question_laws(fit))
    page = template.render(
        title=title,
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        written=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        summary=_summary(fit),
        percent=f"{100 * fit.ci_prob:g}%",
        scores=scores(fit),
        claims=claims(fit, verification),
        levels=levels(fit),
        doubts=_doubts(data),
        notes=fit.notes_on(),
        criticism=_criticism(fit, client),
        tables=_tables(fit, verification),
        download=_file("bayesatk.json", json.dumps(numbers, allow_nan=False)),
        pictures=pictures(drawn, fit, verification, guess),
        card=data.card() if data is not None else None,
        questions=_questions(fit),
        noted=question_sentences(fit),
        methods=_methods(fit),
        provenance=_provenance(fit),
        bibtex=cite(fit),
    )
    with replacing_text(path) as file:
        file.write(page)
    return path


def _doubts(data: Outcomes | None) -> list[str]:
    """Return what is doubtful in how the data were read, which all numbers rest on."""
    notes = () if data is None else data.notes
    return [note for note in map(printable, notes) if note.startswith("CHECK: ")]


def _with_scores(result: Result) -> Result:
    """Return a result that shows the mean score, too, where costs alone were asked for."""
    if result.tabulated:
        return result
    tree = result.tree.copy()
    tree["closed_form"].attrs.pop("costs_alone")
    return Result.of(tree)


def _compared(result: Result) -> Result:
    """Return a result with the comparison of its systems, and their ranks, where it has none."""
    shared = (result.trials > 0).sum(axis=0).max() > 1
    if not (shared and result.answers("compare")):
        return result
    if not result.has("comparison"):
        result = Result.of(compare(result))
    if len(result.systems) > 2 and result.tabulated and not result.has("leaderboard"):
        result = Result.of(leaderboard(result))
    return result


def _template() -> tuple[Any, str]:
    """Return the template of the page, and its script."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("bayesatk", "reporting/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = environment.loader.get_source(environment, "report.js")[0]  # type: ignore[union-attr]
    return environment.get_template("report.html"), script


def _in_order(result: Result, order: list[object]) -> Result:
    """Return a result with its systems, and the judge of each, in this order."""

    def ordered(group: xr.Dataset) -> xr.Dataset:
        return group.sel({dim: order for dim in ("system", "other") if dim in group.indexes})

    tree = result.tree.map_over_datasets(ordered)
    positions = [result.systems.index(system) for system in order]
    tree.attrs["study"] = text_of_systems(result.tree.attrs["study"], positions)
    return Result.of(tree, None)


def _tables(result: Result, verification: Verification | None) -> list[dict[str, Any]]:
    """Return headings with tables as rows of text."""
    tables = tables_of(result, questions=has_question_laws(result))
    if verification is not None:
        tables |= tables_of(verification)
    described = []
    for name, frame in tables.items():
        seen = view(frame[:500], name)  # the file of all numbers has the others
        described.append(
            {
                "title": seen.title,
                "all": len(frame),
                "file": _small(name, frame),
                "columns": seen.headings,
                "rows": seen.rows,
            }
        )
    return described


def _small(name: str, frame: pd.DataFrame) -> tuple[str, str] | None:
    """Return a table as a file, or nothing for a long one, which the JSON holds."""
    text = as_csv(frame)
    return _file(f"{name}.csv", text) if len(text) <= _LONG else None


def _file(name: str, text: str) -> tuple[str, str]:
    """Return the name of a file and a link that holds it, compressed where it is long."""
    content = text.encode()
    kind = {"csv": "text/csv", "json": "application/json"}[name.rpartition(".")[2]]
    if len(content) > _LONG:
        name, content, kind = f"{name}.gz", gzip.compress(content, mtime=0), "application/gzip"
    return name, f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _summary(result: Result) -> str:
    """Say what was evaluated: systems, questions, trials, and how difficulties were modelled."""
    systems = len(result.systems)
    families, groups = ", ".join(result.families), ""
    if result.grouping is not None:
        number = len(result.grouping.labels)
        groups = f" in {number} group{'s' * (number > 1)}"
    shape = f"; difficulty families: {families}" if families else ""
    if result.design is not None:
        shape = f"; success depends on {' and '.join(result.covariates or ())}"
    design = design_words(result.trials, result.weight is not None) + groups
    model = "a model of its own" if result.own else f"{result.pooling} pooling"
    return f"{systems} system{'s' * (systems > 1)} on {design}; {model}{shape}."


def _criticism(result: Result, client: Any) -> list[str]:
    """Return what speaks against the shape of difficulties, or that nothing does."""
    if not result.answers("criticise"):
        return []
    checks = criticise(result, rng=0, client=client)
    flagged = checks[checks["flagged"]]
    if flagged.empty:
        return ["No posterior predictive check is flagged (bayesatk.checks.criticise)."]
    return [f"{row['system']}: {row['sentence']}" for row in flagged.to_dict("records")]


def _questions(result: Result) -> dict[str, Any]:
    """Return successes of trials (or trials alone) by question and system, hardest first."""
    observed = result.group("observed_data")
    trials = result.group("constant_data")["trials"].transpose("question", "system")
    cells = trials.astype(str)
    order, most = slice(None), 500
    if "successes" in observed:
        successes = observed["successes"].transpose("question", "system")
        rate = successes.sum("system") / trials.sum("system").clip(min=1)
        order = rate.argsort(kind="stable").values[:most]  # type: ignore[assignment]
        cells = xr.apply_ufunc(
            lambda c, n: f"{c}/{n}", successes, trials, vectorize=True, output_dtypes=[object]
        )
    shown_cells = cells.isel(question=order)[:most]
    rows = [
        [str(name), *map(str, outcomes)]
        for name, outcomes in zip(
            shown_cells["question"].values, shown_cells.values.tolist(), strict=True
        )
    ]
    systems = [str(name) for name in trials["system"].values.tolist()]
    return {"columns": ["question", *systems], "rows": rows, "all": trials.sizes["question"]}


def _methods(result: Result) -> dict[str, Any]:
    """Return what was computed, in words and formulas."""
    families = {}
    targets = TARGETS if result.grouping is None else GROUPED_TARGETS
    of_costs = "; of costs, these questions, resampled by the Bayesian bootstrap"
    population = result.study.population_words + of_costs * bool(result.costs)
    like_these = f"{targets['like these']} Here they are {population}."
    for metric in (*result.metrics, *result.costs):
        symbol = metric.family.symbol + "k" * metric.family.has_k
        families[symbol] = (metric.family.meaning, metric.family.formula)
    return {
        "metrics": families,
        "pooling": POOLINGS[_structure(result)],
        "targets": targets | {"like these": like_these},
        "priors": _priors(result.study),
        "statistics": statistics_sentence(result),
        "others": method_sentences(result),
        "notes": [note for note in result.notes if note not in result.notes_on()],
    }


def _priors(study: Study) -> list[list[str]]:
    """Return of what, parameter and prior distribution of what is estimated."""
    of_judges = [
        [f"judge of {system}", field.name, _law(field.distribution)]
        for system, rates in zip(study.outcomes.systems, study.judge_rates or (), strict=False)
        for field in rates.fields
    ]
    if study.pooling != "partial":
        of_p = [] if study.prior is None else [["questions", "p", str(study.prior)]]
        return of_p + of_judges
    families = study.prior.family_prior if isinstance(study.prior, HyperPrior) else {"": 1.0}
    return [
        [f"difficulty {family}".strip(), field.name, _law(field.distribution)]
        for family in families
        for field in declared_fields(study, family)
    ] + of_judges


def _law(distribution: Any) -> str:
    """Write a distribution, such as Beta(1, 1)."""
    numbers = np.hstack(astuple(distribution))
    return f"{type(distribution).__name__}({', '.join(f'{number:g}' for number in numbers)})"


def _structure(result: Result) -> str:
    """Return how questions share information, as methods are named."""
    if result.grouping is not None:
        return "groups"
    return "covariates" if result.covariates else str(result.pooling)


def _provenance(result: Result) -> list[tuple[str, str]]:
    """Return name and text of everything that says where the numbers come from."""
    origin = provenance(result)
    rows = []
    for name, value in origin.items():
        if value in (None, [], "") or name in ("notes", "citations", "prior"):  # said above
            continue
        items = value.items() if isinstance(value, dict) else value
        if not isinstance(items, str | int | float):
            items = "; ".join(
                one if isinstance(one, str) else " ".join(map(str, one)) for one in items
            )
        rows.append((name.replace("_", " "), str(items)))
    return rows

"""The ``bayesatk`` command: parse, call, print or save."""

import json
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

Pooling = Literal["partial", "none", "complete"]
_DISAGREE, _BAD_INPUT = 1, 2
_TARGETS = {"questions": "these", "population": "like these", "": ""}
_DEMO_METRICS = ["pass^1,2,3,4", "pass@4", "maj@3", "bayes"]

app = typer.Typer(
    help="Exact Bayesian statistics of repeated-trial evaluation, verified by sampling.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

File = Annotated[Path, typer.Argument(help="Long table: .csv, .tsv, .jsonl, .json or .parquet.")]
Metrics = Annotated[
    list[str],
    typer.Option("--metric", "-m", help="Such as 'pass@1,4', 'pass^4', 'maj@5', 'g-pass@8:0.5'."),
]
PoolingOption = Annotated[Pooling, typer.Option(help="How questions share information.")]
Probability = Annotated[float, typer.Option("--ci-prob", help="Probability of the interval.")]
Missing = Annotated[
    Literal["error", "ignore", "wrong"], typer.Option(help="What a missing outcome means.")
]
ScoreOption = Annotated[
    list[str] | None, typer.Option("--score", help="Score of an outcome: --score C=1 --score I=0.")
]
ColumnOption = Annotated[
    list[str] | None, typer.Option("--column", help="Column of a role: --column question=task.")
]
Seed = Annotated[int | None, typer.Option(help="Seed of the draws; recorded in the result.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Save as .nc or .zarr.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no data card.")]


def _one_line_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Turn the library's own refusals into one line on standard error and exit code 2."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (ValueError, TypeError, OSError) as error:
            print(f"bayesatk: {' '.join(str(error).split())}", file=sys.stderr)
            raise typer.Exit(_BAD_INPUT) from None

    return wrapped


def _pairs(items: list[str] | None, option: str) -> dict[str, str]:
    pairs = {}
    for item in items or []:
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise ValueError(f"{option} must be NAME=VALUE; got {item!r}.")
        pairs[name] = value
    return pairs


def _load(file: Path, missing: Any, score: list[str] | None, column: list[str] | None) -> Any:
    from bayesatk.io.load import load

    scores: dict[Any, float] | None = None
    if score:
        scores = {_label(name): float(value) for name, value in _pairs(score, "--score").items()}
    return load(file, missing=missing, scores=scores, columns=_pairs(column, "--column"))


def _label(text: str) -> str | float:
    """Return an outcome as the readers see it: numbers are numbers."""
    try:
        return float(text)
    except ValueError:
        return text


@app.command()
@_one_line_errors
def evaluate(
    file: File,
    metric: Metrics,
    pooling: PoolingOption = "partial",
    ci_prob: Probability = 0.95,
    ci_kind: Annotated[Literal["eti", "hdi"], typer.Option(help="Kind of interval.")] = "eti",
    missing: Missing = "error",
    score: ScoreOption = None,
    column: ColumnOption = None,
    seed: Seed = None,
    as_json: AsJson = False,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Exact posterior of metrics. Example: bayesatk evaluate runs.csv -m pass@1,4 -m pass^4."""
    from bayesatk.closed_form.evaluate import evaluate as run
    from bayesatk.io.saved import save

    data = _load(file, missing, score, column)
    fit = run(data, metric, pooling=pooling, ci_prob=ci_prob, ci_kind=ci_kind, rng=seed)
    if output is not None:
        save(fit, output)
    if as_json:
        _print_json(_result_json(fit))
        return
    console = Console()
    if not quiet:
        console.print(data.card(), highlight=False, markup=False)
    _print_result(console, fit)
    if output is not None:
        console.print(f"Saved {output}", highlight=False, markup=False)


@app.command()
@_one_line_errors
def verify(
    file: File,
    metric: Metrics,
    pooling: PoolingOption = "partial",
    missing: Missing = "error",
    score: ScoreOption = None,
    column: ColumnOption = None,
    seed: Seed = None,
    as_json: AsJson = False,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Hold the closed form against PyMC; exit code 1 if they disagree.

    Example: bayesatk verify runs.csv -m pass@1,4 --seed 1
    """
    data = _load(file, missing, score, column)
    _verify(data, metric, pooling, seed, as_json, output, quiet)


@app.command()
@_one_line_errors
def demo(as_json: AsJson = False, seed: Seed = 20261121, quiet: Quiet = False) -> None:
    """Evaluate and verify published data: tau-bench airline, 50 tasks x 4 trials."""
    from bayesatk.datasets import tau_bench_airline

    if not as_json and not quiet:
        Console().print(
            "tau-bench airline, gpt-4o (Yao et al. 2024): published pass^1..4 = .420 .273 .220 "
            ".200\n",
            highlight=False,
        )
    _verify(tau_bench_airline(), _DEMO_METRICS, "partial", seed, as_json, None, quiet)


def _verify(
    data: Any,
    metric: list[str],
    pooling: Pooling,
    seed: int | None,
    as_json: bool,
    output: Path | None,
    quiet: bool,
) -> None:
    from bayesatk.closed_form.evaluate import evaluate as run
    from bayesatk.io.saved import save
    from bayesatk.models.sampling import sample
    from bayesatk.verification.verify import verify as hold

    show = Console()
    fit = run(data, metric, pooling=pooling, rng=seed)
    if not as_json:
        if not quiet:
            show.print(data.card(), highlight=False, markup=False)
        _print_result(show, fit)
    progress = not (quiet or as_json) and sys.stderr.isatty()
    if not as_json and not quiet:
        show.print("\nSampling the same model with PyMC (the first run compiles it) ...")
    sampled = sample(data, metric, pooling=pooling, rng=seed, progressbar=progress)
    found = hold(fit, sampled)
    if output is not None:
        save(sampled, output)
    if as_json:
        _print_json(
            {
                **_result_json(fit),
                "verdict": found.verdict,
                "family_error": found.family_error,
                "verification": json.loads(found.table.to_json(orient="records")),
            }
        )
    else:
        _print_verification(show, found, str(fit.attrs["metrics"]).split())
    if found.verdict == "disagree":
        raise typer.Exit(_DISAGREE)


def _result_json(fit: Any) -> dict[str, Any]:
    from bayesatk.results import table

    rows = json.loads(table(fit).to_json(orient="records", double_precision=15))
    attributes = {name: fit.attrs[name] for name in ("method", "pooling", "seed", "ci_prob")}
    return {**attributes, "ci_kind": fit.attrs["ci_kind"], "results": rows}


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, indent=2))


def _print_result(console: Console, fit: Any) -> None:
    from bayesatk.results import notes, table

    frame = table(fit)
    many, beyond = frame["system"].nunique() > 1, frame["prior_sensitivity"].notna().any()
    grid = _grid(f"Posterior (pooling={fit.attrs['pooling']}, {fit.attrs['method']})")
    if many:
        grid.add_column("system")
    for heading in ("metric", "target"):
        grid.add_column(heading, no_wrap=True)
    percent = f"{100 * fit.attrs['ci_prob']:g}% {str(fit.attrs['ci_kind']).upper()}"
    for heading in ("estimate", "mean", "sd", percent, *(["prior x"] if beyond else [])):
        grid.add_column(heading, justify="right", no_wrap=True)
    for row in frame.to_dict("records"):
        first = row["target"] == "questions"
        cells = [str(row["system"])] if many and first else [""] if many else []
        cells += [str(row["metric"]) if first else "", _TARGETS[str(row["target"])]]
        cells += [_number(row["estimate"]) if first else ""]
        cells += [f"{row['mean']:.3f}", f"{row['sd']:.3f}"]
        cells += [f"[{row['ci_lower']:.3f}, {row['ci_upper']:.3f}]"]
        if beyond:
            ratio = row["prior_sensitivity"]
            cells += ["" if ratio != ratio else f"{ratio:.2f}"]
        grid.add_row(*cells)
    console.print(grid, markup=False)
    if beyond:
        console.print(
            "prior x: sd under a weaker prior over the sd; far from 1, an answer for k > trials is "
            "mostly prior.",
            highlight=False,
            markup=False,
        )
    for note in notes(fit):
        console.print(f"Note: {note}", highlight=False, markup=False)


def _grid(title: str) -> Table:
    return Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))


def _number(value: float) -> str:
    return "k>n" if value != value else f"{value:.3f}"


def _print_verification(console: Console, found: Any, asked: list[str]) -> None:
    """Show the quantities that were asked for, and every one that does not agree."""
    frame = found.table.astype(object).where(found.table.notna(), "")
    labels = [_quantity(row) for row in frame.to_dict("records")]
    shown = [
        (label, row)
        for label, row in zip(labels, frame.to_dict("records"), strict=True)
        if label in asked or row["variable"] in ("mean_p", "icc") or row["verdict"] != "agree"
    ]
    many = frame["system"].nunique() > 1
    grid = _grid("Closed form against PyMC")
    for heading in (*(["system"] if many else []), "quantity", "target"):
        grid.add_column(heading, no_wrap=True)
    for heading in ("exact", "sampled", "z mean", "z sd", "z pit", "R-hat", "ESS"):
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("verdict", no_wrap=True)
    for label, row in shown:
        grid.add_row(
            *([str(row["system"])] if many else []), label, _TARGETS[str(row.get("target", ""))],
            f"{row['exact_mean']:.3f}", f"{row['sampled_mean']:.3f}", f"{row['z_mean']:+.1f}",
            f"{row['z_sd']:+.1f}", f"{row['z_pit']:+.1f}", f"{row['rhat']:.3f}",
            f"{row['ess']:.0f}", row["verdict"],
        )  # fmt: skip
    console.print(grid, markup=False)
    console.print(found.summary(), highlight=False, markup=False)


def _quantity(row: Any) -> str:
    """Return the metric as people write it, from its variable, k and tau."""
    from bayesatk.metrics import FAMILIES

    symbols = {family.variable: family.symbol for family in FAMILIES.values()}
    symbol = symbols.get(row["variable"])
    if symbol is None:
        return str(row["variable"])
    label = symbol if row.get("k", "") == "" else f"{symbol}{row['k']:g}"
    return label if row.get("tau", "") == "" else f"{label}:{row['tau']:g}"

"""The ``bayesatk`` command: parse, call, print or save."""

import json
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from bayesatk.terminal import (
    print_baseline,
    print_comparison,
    print_plan,
    print_published_baseline,
    print_result,
    print_verification,
)

Pooling = Literal["partial", "none", "complete"]
_DISAGREE, _BAD_INPUT = 1, 2
_DEMO_METRICS = ["pass^1,2,3,4", "pass@4", "maj@3", "bayes"]

app = typer.Typer(
    help="Exact Bayesian statistics of repeated-trial evaluation, verified by sampling.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

File = Annotated[Path, typer.Argument(help="Long table: .csv, .tsv, .jsonl, .json or .parquet.")]
Metrics = Annotated[
    list[str],
    typer.Option("--metric", "-m", help="Such as 'pass@1,4', 'pass^4', 'maj@5', 'max@4'."),
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
    list[str] | None, typer.Option("--column", help="Column of a role: --column answer=text.")
]
SuccessOption = Annotated[
    str | None, typer.Option(help="Scores that succeed: --success 'score >= 0.5'.")
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
    success: SuccessOption = None,
    seed: Seed = None,
    as_json: AsJson = False,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Exact posterior of metrics. Example: bayesatk evaluate runs.csv -m pass@1,4 -m pass^4."""
    from bayesatk.closed_form.evaluate import evaluate as run
    from bayesatk.io.saved import save

    data = _load(file, missing, score, column)
    fit = run(
        data, metric, pooling=pooling, success=success, ci_prob=ci_prob, ci_kind=ci_kind, rng=seed
    )
    if output is not None:
        save(fit, output)
    if as_json:
        _print_json(_result_json(fit))
        return
    console = Console()
    if not quiet:
        console.print(data.card(), highlight=False, markup=False)
    print_result(console, fit)
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
    success: SuccessOption = None,
    seed: Seed = None,
    as_json: AsJson = False,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Hold the closed form against PyMC; exit code 1 if they disagree.

    Example: bayesatk verify runs.csv -m pass@1,4 --seed 1
    """
    data = _load(file, missing, score, column)
    _verify(data, metric, pooling, success, seed, as_json, output, quiet)


@app.command()
@_one_line_errors
def compare(
    file: File,
    metric: Metrics,
    rope: Annotated[float, typer.Option(help="Half-width of no difference.")] = 0.0,
    pooling: PoolingOption = "partial",
    missing: Missing = "error",
    score: ScoreOption = None,
    column: ColumnOption = None,
    success: SuccessOption = None,
    seed: Seed = None,
    as_json: AsJson = False,
    output: Output = None,
) -> None:
    """Hold every pair of systems against each other: bayesatk compare runs.csv -m pass@1."""
    from bayesatk.closed_form.evaluate import evaluate as run
    from bayesatk.comparison.systems import compare as hold
    from bayesatk.comparison.systems import comparison_table
    from bayesatk.io.saved import save

    data = _load(file, missing, score, column)
    fit = run(data, metric, pooling=pooling, success=success, rng=seed)
    result = hold(fit, rope=rope, rng=seed)
    if output is not None:
        save(result, output)
    if as_json:
        rows = json.loads(comparison_table(result).to_json(orient="records", double_precision=15))
        _print_json({"pooling": pooling, "rope": rope, "results": rows})
    else:
        print_comparison(Console(), result)


@app.command()
@_one_line_errors
def plan(
    metric: Annotated[str, typer.Option("--metric", "-m", help="One metric, such as 'pass@4'.")],
    file: Annotated[Path | None, typer.Argument(help="Pilot: a long table, as above.")] = None,
    difficulty: Annotated[
        list[str] | None,
        typer.Option(help="In place of a pilot: --difficulty SYSTEM=MEAN,ICC, once or twice."),
    ] = None,
    width: Annotated[float | None, typer.Option(help="Width of the interval to reach.")] = None,
    prob_correct: Annotated[
        float | None, typer.Option(help="Probability that the better of two comes out ahead.")
    ] = None,
    target: Annotated[
        Literal["population", "questions"], typer.Option(help="Questions like these, or these.")
    ] = "population",
    trials: Annotated[str, typer.Option(help="Trials per question to consider.")] = "1,2,4,8,16",
    missing: Missing = "error",
    score: ScoreOption = None,
    column: ColumnOption = None,
    success: SuccessOption = None,
    as_json: AsJson = False,
) -> None:
    """Questions and trials that an evaluation needs.

    Examples: bayesatk plan pilot.csv -m pass@4 --width 0.1; bayesatk plan -m pass@1
    --difficulty a=0.6,0.3 --difficulty b=0.65,0.3 --prob-correct 0.9
    """
    from bayesatk.closed_form.evaluate import evaluate as run
    from bayesatk.comparison.planning import plan as draw_up

    if (file is None) == (difficulty is None):
        raise ValueError("give a pilot FILE or --difficulty SYSTEM=MEAN,ICC, one of the two.")
    source: Any
    if file is None:
        pairs = _pairs(difficulty, "--difficulty")
        source = {name: [float(part) for part in text.split(",")] for name, text in pairs.items()}
    else:
        data = _load(file, missing, score, column)
        source = run(data, metric, success=success, rng=0)
    ns = [int(part) for part in trials.split(",")]
    table = draw_up(
        source, metric, width=width, prob_correct=prob_correct, target=target, trials=ns
    )
    if as_json:
        rows = json.loads(table.to_json(orient="records", double_precision=15))
        _print_json({"metric": metric, "target": target, "results": rows})
    else:
        print_plan(Console(), table, metric)


@app.command()
@_one_line_errors
def baseline(
    file: Annotated[Path | None, typer.Argument(help="Long table, as for evaluate.")] = None,
    guess: Annotated[
        float | None, typer.Option("--guess", "-p", help="Probability of guessing right.")
    ] = None,
    labels: Annotated[
        list[str] | None, typer.Option("--labels", help="Questions by labels: --labels 4=80.")
    ] = None,
    configurations: Annotated[
        float, typer.Option("--t", "-t", help="Configurations tried (prompts, seeds).")
    ] = 10.0,
    questions: Annotated[int | None, typer.Option("--n", "-n", help="Questions.")] = None,
    accuracy: Annotated[float | None, typer.Option(help="Accuracy of the best.")] = None,
    decimals: Annotated[
        int | None, typer.Option(help="Decimals that --accuracy was rounded to.")
    ] = None,
    correlation: Annotated[float, typer.Option(help="Between configurations, 0 to 1.")] = 0.0,
    alpha: Annotated[float, typer.Option(help="Level of significance.")] = 0.05,
    pooling: PoolingOption = "partial",
    missing: Missing = "error",
    score: ScoreOption = None,
    column: ColumnOption = None,
    success: SuccessOption = None,
    seed: Seed = None,
    as_json: AsJson = False,
    output: Output = None,
) -> None:
    """Hold systems, or a published accuracy, against the best of t random guessers.

    Examples: bayesatk baseline runs.csv --guess 0.25 -t 10;
    bayesatk baseline --n 100 --guess 0.5 -t 10 --accuracy 0.6
    """
    p = _chances(guess, labels)
    if file is None:
        options = {"decimals": decimals, "correlation": correlation}
        _published_baseline(p, questions, configurations, accuracy, alpha, as_json, options)
        return
    if questions is not None or accuracy is not None or decimals is not None:
        raise ValueError("--n, --accuracy and --decimals go without a FILE, which has them.")
    from bayesatk.baseline import baseline_table, random_baseline
    from bayesatk.closed_form.evaluate import evaluate as run
    from bayesatk.io.saved import save

    data = _load(file, missing, score, column)
    if success is not None:
        data = data.with_success(success)
    fit = run(data, "bayes", pooling=pooling, rng=seed)
    result = random_baseline(fit, p, configurations, correlation=correlation, alpha=alpha, rng=seed)
    if output is not None:
        save(result, output)
    if as_json:
        rows = json.loads(baseline_table(result).to_json(orient="records", double_precision=15))
        _print_json({"t": configurations, "correlation": correlation, "results": rows})
    else:
        print_baseline(Console(), result)


def _chances(guess: float | None, labels: list[str] | None) -> float | dict[int, int]:
    """Return the probability of guessing, from one of the two ways to say it."""
    if (guess is None) == (labels is None):
        raise ValueError("give either --guess PROBABILITY or --labels LABELS=QUESTIONS.")
    if guess is not None:
        return guess
    pairs = _pairs(labels, "--labels")
    if not all(text.isdecimal() for pair in pairs.items() for text in pair):
        raise ValueError(f"--labels must be LABELS=QUESTIONS, whole numbers; got {pairs}.")
    return {int(name): int(value) for name, value in pairs.items()}


def _published_baseline(
    p: float | dict[int, int],
    questions: int | None,
    t: float,
    accuracy: float | None,
    alpha: float,
    as_json: bool,
    options: dict[str, Any],
) -> None:
    """Print the expected best, and the p-value of an accuracy, from numbers alone."""
    from bayesatk.max_random import MaxOrderStatisticPoissonBinomial

    if questions is None:
        if not isinstance(p, dict):
            raise ValueError("give a FILE, or --n QUESTIONS with --guess.")
        questions = sum(p.values())
    law = MaxOrderStatisticPoissonBinomial(questions, p)
    shared = {"correlation": options["correlation"]}
    needed = law.smallest_significant(t, alpha=alpha, **shared)
    answer: dict[str, Any] = {
        "n": questions,
        "t": t,
        "expected_best": law.max_random_baseline(t, **shared),
        "smallest_significant": None if needed != needed else needed,
    }
    if accuracy is not None:
        answer |= {"accuracy": accuracy, "p_value": law.p_value(accuracy, t, **options)}
    if as_json:
        _print_json(answer)
    else:
        print_published_baseline(answer, alpha)


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
    _verify(tau_bench_airline(), _DEMO_METRICS, "partial", None, seed, as_json, None, quiet)


def _verify(
    data: Any,
    metric: list[str],
    pooling: Pooling,
    success: str | None,
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
    fit = run(data, metric, pooling=pooling, success=success, rng=seed)
    if not as_json:
        if not quiet:
            show.print(data.card(), highlight=False, markup=False)
        print_result(show, fit)
    progress = not (quiet or as_json) and sys.stderr.isatty()
    if not as_json and not quiet:
        show.print("\nSampling the same model with PyMC (the first run compiles it) ...")
    sampled = sample(data, metric, pooling=pooling, success=success, rng=seed, progressbar=progress)
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
        print_verification(show, found, str(fit.attrs["metrics"]).split())
    if found.verdict == "disagree":
        raise typer.Exit(_DISAGREE)


def _result_json(fit: Any) -> dict[str, Any]:
    from bayesatk.results import category_table, notes, table

    def rows(frame: Any) -> Any:
        return json.loads(frame.to_json(orient="records", double_precision=15))

    attributes = {name: fit.attrs[name] for name in ("method", "pooling", "seed", "ci_prob")}
    found = {**attributes, "ci_kind": fit.attrs["ci_kind"], "results": rows(table(fit))}
    if "reach_probability" in fit["posterior"]:
        found["categories"] = rows(category_table(fit))
    return {**found, "notes": notes(fit)}


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, indent=2))

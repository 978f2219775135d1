"""The ``bayesatk`` command: parse, call, print or save."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bayesatk.cli import baseline, gating, planning
from bayesatk.cli.actions import (
    DISAGREE,
    check_report,
    check_verify,
    compare_with_sampler,
    convert_logs,
    deliver,
    inspect_files,
    ranked,
    sampled,
    say_what_was_found,
)
from bayesatk.cli.options import (
    DEFAULT_T,
    AsJson,
    ConfigurationsOfReport,
    Difficulty,
    GroupWeight,
    JudgeTable,
    Kind,
    Metrics,
    Output,
    PoolingOption,
    Probability,
    Quiet,
    Rope,
    Seed,
    Success,
    check_file,
    families,
    one_line_errors,
    structure,
    twice_marked,
    whole_numbers,
    working,
)
from bayesatk.cli.reading import reads_data
from bayesatk.cli.terminal import (
    print_costs,
    print_result,
    terminal,
)

app = typer.Typer(
    help="Exact Bayesian statistics of repeated-trial evaluation, verified by sampling.",
    epilog="Exit codes: 0 done, 1 closed form and sampler disagree, or a gate fails, 2 bad input, "
    "3 a gate is inconclusive.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        print(f"bayesatk {version('bayesatk')}")
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Exact Bayesian statistics of repeated-trial evaluation, verified by sampling."""


@app.command(epilog="Example: bayesatk evaluate runs.csv -m pass@1,4 -m pass^4")
@reads_data()
def evaluate(
    data: Any,
    metric: Metrics,
    pooling: PoolingOption = "partial",
    difficulty: Difficulty = None,
    group_weight: GroupWeight = None,
    ci_prob: Probability = 0.95,
    ci_kind: Kind = "eti",
    success: Success = None,
    judge: JudgeTable = None,
    seed: Seed = None,
    as_json: AsJson = False,
    output: Output = None,
    quiet: Quiet = False,
    formula: Any = None,
) -> None:
    """Compute the exact posterior of metrics."""
    from bayesatk.posterior.evaluate import evaluate as run

    fit = run(
        data, metric, pooling=pooling, difficulty=families(difficulty), success=success,
        **structure(data, formula, group_weight), judge=twice_marked(judge),
        ci_prob=ci_prob, ci_kind=ci_kind, rng=seed,
        progress=False if quiet or as_json else None,
    )  # fmt: skip
    deliver(fit, output, as_json, print_result, None if quiet else data)


@app.command("cost", epilog="Example: bayesatk cost runs.csv --cost usd --cost-unit USD -k 1,4")
@reads_data()
def cost_of_success(
    data: Any,
    k: Annotated[
        str, typer.Option("--k", "-k", help="Largest number of tries of a question: -k 1,4.")
    ] = "1",
    spend: Annotated[
        list[float] | None,
        typer.Option("--spend", help="Budget per question, on average, in the unit of costs."),
    ] = None,
    difficulty: Difficulty = None,
    ci_prob: Probability = 0.95,
    ci_kind: Kind = "eti",
    success: Success = None,
    seed: Seed = None,
    as_json: AsJson = False,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Compute cost per success, and success at a budget; name the column with --cost."""
    from bayesatk.costs.evaluation import evaluate_cost

    fit = evaluate_cost(
        data, whole_numbers(k), spend or (), difficulty=families(difficulty),
        success=success, ci_prob=ci_prob, ci_kind=ci_kind, rng=seed,
        progress=False if quiet or as_json else None,
    )  # fmt: skip
    deliver(fit, output, as_json, print_costs, None if quiet else data)


@app.command(epilog="Example: bayesatk verify runs.csv -m pass@1,4 --seed 1")
@reads_data(check=check_verify)
def verify(
    data: Any,
    metric: Metrics,
    pooling: PoolingOption = "partial",
    difficulty: Difficulty = None,
    group_weight: GroupWeight = None,
    success: Success = None,
    judge: JudgeTable = None,
    seed: Seed = None,
    as_json: AsJson = False,
    output: Output = None,
    quiet: Quiet = False,
    formula: Any = None,
) -> None:
    """Compare the closed form with PyMC; exit code 1 if they disagree."""
    shapes = families(difficulty)
    compare_with_sampler(
        data, metric, pooling, shapes, success, seed, as_json, output, quiet,
        structure(data, formula, group_weight) | {"judge": twice_marked(judge)},
    )  # fmt: skip


@app.command(epilog="Example: bayesatk compare a=one.eval b=two.eval -m pass@1,4 --rope 0.02")
@reads_data()
def compare(
    data: Any,
    metric: Metrics,
    rope: Rope = 0.0,
    pairs_too: Annotated[
        bool, typer.Option("--pairs", help="Compare every pair of more than four systems, too.")
    ] = False,
    pooling: PoolingOption = "partial",
    difficulty: Difficulty = None,
    group_weight: GroupWeight = None,
    ci_prob: Probability = 0.95,
    ci_kind: Kind = "eti",
    success: Success = None,
    judge: JudgeTable = None,
    seed: Seed = None,
    as_json: AsJson = False,
    output: Output = None,
    quiet: Quiet = False,
    formula: Any = None,
) -> None:
    """Rank systems, and compare pairs of up to four systems (of more with --pairs)."""
    from bayesatk.posterior.evaluate import evaluate as run

    progress = False if quiet or as_json else None
    fit = run(
        data, metric, pooling=pooling, difficulty=families(difficulty), success=success,
        **structure(data, formula, group_weight), judge=twice_marked(judge),
        ci_prob=ci_prob, ci_kind=ci_kind, rng=seed,
        progress=progress,
    )  # fmt: skip
    with working("Ranking ...", quiet or as_json):
        result, show = ranked(fit, rope, seed, pairs_too, progress)
    deliver(result, output, as_json, show, None if quiet else data)


app.command(epilog=planning.EXAMPLES)(planning.plan)
app.command(epilog=baseline.EXAMPLES)(baseline.baseline)
app.command(epilog=gating.EXAMPLES)(gating.gate)


@app.command(epilog="Example: bayesatk report logs/ -o report.html --guess 0.25")
@reads_data(check=check_report, endings=(".html", ".htm"))
def report(
    data: Any,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page, .html.")],
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", help="Default: pass@k and pass^k, or the mean score."),
    ] = None,
    pooling: PoolingOption = "partial",
    difficulty: Difficulty = None,
    group_weight: GroupWeight = None,
    ci_prob: Probability = 0.95,
    ci_kind: Kind = "eti",
    success: Success = None,
    rope: Rope = 0.0,
    guess: Annotated[
        float | None, typer.Option("--guess", "-p", help="Compare with random guessing, too.")
    ] = None,
    configurations: ConfigurationsOfReport = None,
    with_pymc: Annotated[
        bool, typer.Option("--verify", help="Verify by sampling with PyMC, too.")
    ] = False,
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Evaluation report",
    seed: Seed = None,
    quiet: Quiet = False,
    formula: Any = None,
) -> None:
    """Write one self-contained page: claims, tables, plots, data, methods, provenance."""
    from bayesatk.guessing.baseline import random_baseline
    from bayesatk.posterior.evaluate import evaluate as run
    from bayesatk.reporting import report as write_page
    from bayesatk.reporting.methods import usual_metrics

    console = terminal()
    if not quiet:
        console.print(data.card(), highlight=False, markup=False)
    if guess is not None and configurations is None:
        configurations = DEFAULT_T
        console.print(
            f"Random guessing: the best of t = {DEFAULT_T:g} guessers. If you tried another number "
            "of configurations (prompts, seeds), say so with --t.",
            highlight=False,
        )
    metrics = metric or usual_metrics(data, success)
    progress = False if quiet else None
    fit = run(
        data, metrics, pooling=pooling, difficulty=families(difficulty), success=success,
        **structure(data, formula, group_weight), ci_prob=ci_prob, ci_kind=ci_kind, rng=seed,
        progress=progress,
    )  # fmt: skip
    if len(data.systems) > 1:
        fit, _ = ranked(fit, rope, seed, True, progress)
    with working("Drawing ...", quiet):
        if guess is not None:
            fit = random_baseline(fit, guess, configurations or DEFAULT_T, rng=seed)
    verification = None
    if with_pymc:
        shapes = families(difficulty)
        extra_options = structure(data, formula, group_weight)
        verification = sampled(
            data, metrics, pooling, shapes, success, seed, quiet, fit, extra_options
        )
    with working("Drawing ...", quiet):
        write_page(fit, output, data=data, verification=verification, guess=guess, title=title)
    console.print(f"Saved {output}", highlight=False, markup=False)
    if verification is not None and verification.verdict == "disagree":
        raise typer.Exit(DISAGREE)


@app.command(epilog="Example: bayesatk doctor logs/")
@reads_data(read=inspect_files, without=("missing", "shared"))
def doctor(data: Any, quiet: Quiet = False) -> None:
    """Report the format and contents of files, what is doubtful, and the next command."""
    say_what_was_found(data(), quiet)


@app.command(epilog="Example: bayesatk convert logs/ -o runs.csv --answers")
@reads_data(
    read=convert_logs,
    without=("missing", "score", "shared", "cost_unit", "missing_cost"),
    endings=(".csv", ".jsonl", ".parquet"),
)
def convert(
    data: Any,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The long table: .csv, .jsonl or .parquet.")
    ],
    quiet: Quiet = False,
) -> None:
    """Write logs as one long table with a row per trial."""
    path = data(output)
    if not quiet:
        terminal().print(f"Saved {path}", highlight=False, markup=False)


@app.command(epilog="Example: bayesatk cite fit.nc > references.bib")
@one_line_errors
def cite(
    result: Annotated[
        Path | None, typer.Argument(help="A saved result; default: all methods of the library.")
    ] = None,
) -> None:
    """Print BibTeX of the methods that a result used."""
    if result is not None:
        check_file(result)
    from bayesatk.io.saved import load_result
    from bayesatk.results.citations import cite as entries

    print(entries(None if result is None else load_result(result)))


@app.command(epilog="Example: bayesatk demo --seed 7")
@one_line_errors
def demo(as_json: AsJson = False, seed: Seed = 20261121, quiet: Quiet = False) -> None:
    """Evaluate and verify published data: tau-bench airline, 50 tasks x 4 trials."""
    from bayesatk.datasets import tau_bench_airline

    if not as_json and not quiet:
        terminal().print(
            "tau-bench airline, gpt-4o (Yao et al. 2024): published pass^1..4 = .420 .273 .220 "
            ".200\n",
            highlight=False,
        )
    metrics = ["pass^1,2,3,4", "pass@4", "maj@3", "bayes"]
    compare_with_sampler(
        tau_bench_airline(), metrics, "partial", None, None, seed, as_json, None, quiet
    )

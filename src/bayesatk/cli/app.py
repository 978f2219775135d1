"""The ``bayesatk`` command: parse, call, print or save."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Exit, Option, Typer

from bayesatk._tools.packages import REPORT, SAMPLING, require
from bayesatk.cli.decisions import gate, guessers, plan, ranked
from bayesatk.cli.options import (
    BAD_INPUT,
    DEFAULT_T,
    DISAGREE,
    READING,
    Delivery,
    Evaluation,
    GroupOfCommands,
    Reading,
    announce,
    check_file,
    command,
    print_json,
    working,
)
from bayesatk.cli.remedies import as_options, with_commands
from bayesatk.cli.terminal import (
    print_result,
    print_verification,
    say,
    terminal,
)

app = Typer(
    cls=GroupOfCommands,
    help="Exact Bayesian statistics of repeated-trial evaluation, verified by sampling.",
    epilog="Exit codes: 0 done, 1 closed form and sampler disagree, a gate fails, "
    "2 bad input, 3 a gate is inconclusive.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        print(f"bayesatk {version('bayesatk')}")
        raise Exit


@app.callback()
def options(
    show_version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Exact Bayesian statistics of repeated-trial evaluation, verified by sampling."""


@command(app, "Example: bayesatk evaluate runs.csv -m pass@1,4 -m pass^4")
def evaluate(reading: Reading, evaluation: Evaluation, delivery: Delivery) -> None:
    """Compute the exact posterior of metrics."""
    delivery.deliver(*_evaluated(reading, evaluation, delivery))


def _evaluated(reading: Reading, evaluation: Evaluation, delivery: Delivery) -> tuple[Any, Any]:
    """Return the result of the closed form, and the data."""
    data = reading.load(delivery.output)
    evaluation = evaluation.on(data)
    model = evaluation.model(data, reading)
    return evaluation.evaluate(data, model, delivery.progress), data


_OF_METRICS = ("metric", "group_weight", "population", "judge", "prior_trials", "prior_weight")


@command(
    app, "Example: bayesatk verify runs.csv -m pass@1,4 --seed 1", without=("ci_prob", "ci_kind")
)
def verify(reading: Reading, evaluation: Evaluation, delivery: Delivery) -> None:
    """Compare the closed form with PyMC; exit code 1 if they disagree."""
    require(*SAMPLING)
    data = reading.load(delivery.output)
    _compare_with_sampler(data, evaluation.on(data), delivery, reading)


@command(app, "Example: bayesatk compare a=one.eval b=two.eval -m pass@1,4 --rope 0.02")
def compare(
    reading: Reading,
    evaluation: Evaluation,
    delivery: Delivery,
    rope: float = 0.0,
    pairs: bool = False,
) -> None:
    """Compare every pair of up to four systems; rank more of them in a leaderboard.

    Parameters
    ----------
    pairs
        Compare every pair of more than four systems, too.
    rope
        Half-width of the region of practical equivalence of a pair; implies --pairs.
    """
    fit, data = _evaluated(reading, evaluation, delivery)
    with working("Ranking ...", delivery.silent):
        result = ranked(fit, rope, pairs)
    delivery.deliver(result, data)


@command(app, "Example: bayesatk leaderboard runs.csv -m pass@1,4")
def leaderboard(reading: Reading, evaluation: Evaluation, delivery: Delivery) -> None:
    """Rank all systems in one table, with tiers and the probability of being the best."""
    from bayesatk.comparison.boards.leaderboard import leaderboard as rank_systems

    fit, data = _evaluated(reading, evaluation, delivery)
    with working("Ranking ...", delivery.silent):
        result = rank_systems(fit)
    delivery.deliver(result, data)


command(
    app,
    "Examples: bayesatk plan pilot.csv -m pass@4 --width 0.1; bayesatk plan -m pass@1 "
    "--difficulty a=0.6,0.3 --difficulty b=0.65,0.3 --prob-ahead 0.8",
    optional_files=True,
    without=("group",),
)(plan)
command(
    app,
    "Examples: bayesatk guess runs.csv --guess 0.25 -t 10; bayesatk guess --n 100 "
    "--guess 0.5 -t 10 --accuracy 0.6",
    name="guess",
    optional_files=True,
    without=(*_OF_METRICS, "ci_prob", "ci_kind"),
)(guessers)
command(
    app,
    "Examples: bayesatk gate new/ --baseline main/ --policy gate.toml; bayesatk gate --policy "
    "gate.toml --design --difficulty 0.6,0.3 --questions 200 --trials 4; bayesatk gate runs.csv "
    "--system tuned --system base --metric pass@1 --margin 0.02; bayesatk gate --init",
    optional_files=True,
    without=("shared",),
)(gate)


@command(app, "Example: bayesatk report logs/ --guess 0.25", without=("judge",))
def report(
    reading: Reading,
    evaluation: Evaluation,
    output: Path = Path("report.html"),
    rope: float = 0.0,
    guess: float | None = None,
    t: float | None = None,
    with_pymc: bool = False,
    title: str = "Evaluation report",
) -> None:
    """Write one self-contained page: claims, tables, plots, data, methods, provenance.

    Parameters
    ----------
    output : -o
        The page, .html.
    guess : -p
        Compare with random guessing, too.
    t : -t
        Configurations tried, for --guess; default: 10.
    with_pymc : --verify
        Verify by sampling with PyMC, too.
    title
        Heading of the page.
    rope
        Half-width of the region of practical equivalence.
    """
    require(*REPORT)
    if with_pymc:
        require(*SAMPLING)
    data = reading.load(output, endings=(".html", ".htm"))
    from bayesatk.guessing.baseline import random_baseline
    from bayesatk.reporting import report as write_page

    console, quiet, seed = terminal(), reading.quiet, evaluation.seed
    if not quiet:
        say(console, data.card())
    if guess is not None and t is None:
        say(
            console,
            f"Random guessing: the best of t = {DEFAULT_T:g} guessers. If you tried another number "
            "of configurations (prompts, seeds), say so with --t.",
        )
    evaluation = evaluation.on(data)
    progress, model = False if quiet else None, evaluation.model(data, reading)
    announce("Evaluating ...", quiet)
    fit = evaluation.evaluate(data, model, progress)
    if rope:
        from bayesatk.comparison.pairs.systems import compare as compare_systems

        fit = compare_systems(fit, rope=rope)
    if guess is not None:
        with working("Comparing with random guessers ...", quiet):
            fit = random_baseline(fit, guess, t or DEFAULT_T, rng=seed)
    verification = _verified(fit, data, model, quiet) if with_pymc else None
    announce("Drawing the page ...", quiet)
    with working("Drawing the page ...", quiet):
        write_page(
            fit,
            output,
            data=data,
            verification=verification,
            guess=guess,
            title=title,
        )
    say(console, f"Saved {output}")
    if verification is not None and verification.verdict == "disagree":
        raise Exit(DISAGREE)


@command(app, "Example: bayesatk doctor logs/", without=("shared", "system"))
def doctor(reading: Reading, as_json: bool = False) -> None:
    """Report the format and contents of files, what is doubtful, and the next command.

    Parameters
    ----------
    as_json : --json
        Print a document instead.
    """

    def inspect_files(source: Any, **options: Any) -> Any:
        from bayesatk.io.inspect_source import inspect_source

        return inspect_source(source, **options)

    report = reading.load(read=inspect_files)
    if as_json:
        print_json(report.as_json(partial(as_options, offered=READING)))
    elif not reading.quiet:
        say(terminal(), report.as_text(partial(with_commands, offered=READING)))
    if report.error is not None:
        if reading.quiet:
            print(f"bayesatk: {with_commands(report.error, READING)}", file=sys.stderr)
        raise Exit(BAD_INPUT)


@command(
    app, "Example: bayesatk convert logs/ -o runs.csv --answers",
    without=(
        "missing", "score", "success", "better", "system", "shared", "cost_unit", "missing_cost",
    ),
)  # fmt: skip
def convert(
    reading: Reading,
    output: Path,
) -> None:
    """Write logs as one long table with a row per trial.

    Parameters
    ----------
    output : -o
        The long table: .csv, .jsonl or .parquet.
    """

    def write_table(source: Any, **options: Any) -> Path:
        from bayesatk.io.load import convert

        return convert(source, output, **options)

    path = reading.load(output, read=write_table, endings=(".csv", ".jsonl", ".parquet"))
    if not reading.quiet:
        say(terminal(), f"Saved {path}")


@command(app, "Example: bayesatk cite fit.nc > references.bib")
def cite(result: Path | None = None) -> None:
    """Print BibTeX of the methods that a result used.

    Parameters
    ----------
    result
        A saved result; default: all methods of the library.
    """
    if result is not None:
        check_file(result)
    from bayesatk.io.saved import load_result
    from bayesatk.results.citations import cite as entries

    print(entries(None if result is None else load_result(result)))


@command(app, "Example: bayesatk demo --seed 7")
def demo(as_json: bool = False, seed: int | None = 20261121, quiet: bool = False) -> None:
    """Evaluate and verify published data: tau-bench airline, 50 tasks x 4 trials."""
    from bayesatk.datasets import tau_bench_airline

    delivery = Delivery(as_json, quiet=quiet)
    if not delivery.silent:
        say(
            terminal(),
            "tau-bench airline, gpt-4o (Yao et al. 2024): published pass^1..4 = .420 .273 .220 "
            ".200\n",
        )
    evaluation = Evaluation(["pass^1,2,3,4", "pass@4", "maj@3", "mean"], seed=seed)
    _compare_with_sampler(tau_bench_airline(), evaluation, delivery)


def _compare_with_sampler(
    data: Any, evaluation: Evaluation, delivery: Delivery, reading: Reading | None = None
) -> None:
    """Evaluate, sample, print both and whether they agree; leave with an exit code if not."""
    from bayesatk.io.exports import as_json

    model, console = evaluation.model(data, reading), terminal()
    if (model["judge"] is not None or not data.binary) and evaluation.pooling == "partial":
        model["difficulty"] = model["difficulty"] or "beta"  # PyMC samples one family at a time
    fit = evaluation.evaluate(data, model, None)
    if not delivery.silent:
        say(console, data.card())
    if not delivery.as_json:
        print_result(console, fit)
    if not delivery.silent:
        console.print("\nSampling the same model with PyMC (the first run compiles it) ...")
    verification = _verified(fit, data, model, delivery.silent, delivery.save)
    if delivery.as_json:
        document, checked = as_json(fit), as_json(verification)
        document["tables"] |= checked["tables"]
        print_json(document | {name: checked[name] for name in ("verdict", "alpha")})
    else:
        print_verification(console, verification)
    if verification.verdict == "disagree":
        raise Exit(DISAGREE)


def _verified(
    fit: Any,
    data: Any,
    model: dict[str, Any],
    quiet: bool,
    save: Callable[[Any], None] | None = None,
) -> Any:
    """Sample the model of a closed form, save the draws where asked, and compare the two."""
    from bayesatk.models.sampling import sample
    from bayesatk.results.result import Result
    from bayesatk.verification.verify import verify as verify_result

    metrics = Result.of(fit).metrics  # without those of costs
    stated = {name: value for name, value in model.items() if value is not None}
    watched = not quiet and sys.stderr.isatty()
    sampled = sample(data, metrics, progress=watched, **stated)
    if save is not None:
        save(sampled)
    return verify_result(fit, sampled)

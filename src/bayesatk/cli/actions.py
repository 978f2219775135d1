"""What the commands do once their arguments are read: evaluate, verify, print, save."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import typer

from bayesatk._tools.packages import REPORT, SAMPLING, require
from bayesatk.cli.messages import as_options, options_of
from bayesatk.cli.options import BAD_INPUT, Pooling, print_json, write
from bayesatk.cli.reading import read_options
from bayesatk.cli.terminal import (
    print_comparison,
    print_leaderboard,
    print_result,
    print_verification,
    terminal,
)

DISAGREE = 1  # exit code


def deliver(
    result: Any,
    output: Path | None,
    as_json: bool,
    show: Callable[[Any, Any], None],
    data: Any = None,
) -> None:
    """Save a result and print it: as JSON, or as tables below the card of its data."""
    from bayesatk.io.exports import as_json as tabulated

    if as_json:
        write(result, output)
        print_json(tabulated(result))
        return
    console = terminal()
    if data is not None:
        console.print(data.card(), highlight=False, markup=False)
    show(console, result)
    write(result, output, console)


def check_report(files: list[str] | None, with_pymc: bool, **_: Any) -> None:
    """Refuse a page that cannot be made, before anything is computed."""
    require(*REPORT)
    if with_pymc:
        require(*SAMPLING)


def check_verify(files: list[str] | None, **_: Any) -> None:
    """Refuse to sample without a sampler, before anything is computed."""
    require(*SAMPLING)


def convert_logs(*args: Any, **options: Any) -> Path:
    """Turn logs into one long table."""
    from bayesatk.io.convert import convert as turn

    return turn(*args, **options)


def inspect_files(source: Any, **options: Any) -> Any:
    """Return what files are and hold."""
    from bayesatk.io.inspect_source import inspect_source

    set_options = {name: value for name, value in options.items() if value not in (None, False, {})}
    usual = {"question_key": "id", "same_system": "error", "empty_output": "marked"}
    return inspect_source(
        source, **{name: value for name, value in set_options.items() if usual.get(name) != value}
    )


def say_what_was_found(report: Any, quiet: bool) -> None:
    """Print what files are and hold; leave with an exit code if they cannot be read."""
    write = partial(as_options, offered=options_of(read_options))
    if not quiet:
        terminal().print(report.as_text(write), highlight=False, markup=False)
    if report.error is not None:
        if quiet:
            print(f"bayesatk: {write(report.error)}", file=sys.stderr)
        raise typer.Exit(BAD_INPUT)


def ranked(
    fit: Any, rope: float, seed: int | None, pairs_too: bool, progress: bool | None
) -> tuple[Any, Callable[[Any, Any], None]]:
    """Rank three systems or more, compare pairs where asked or few; and return how to print it."""
    from bayesatk.comparison.boards.leaderboard import leaderboard
    from bayesatk.comparison.pairs.systems import compare as compare_systems
    from bayesatk.results.result import Result

    evaluated, board = Result.of(fit), None
    if len(evaluated.systems) > 2 and evaluated.answers("leaderboard"):
        board = leaderboard(evaluated, rng=seed)
    if board is None or pairs_too or len(evaluated.systems) <= 4:
        fit = compare_systems(fit, rope=rope, rng=seed, progress=progress)
    if board is None:
        return fit, print_comparison
    fit["leaderboard"] = board.attached()["leaderboard"]

    def show(console: Any, result: Any) -> None:
        print_leaderboard(console, board)
        if "comparison" in result:
            print_comparison(console, result, tiers=False)

    return fit, show


def compare_with_sampler(
    data: Any,
    metric: list[str],
    pooling: Pooling,
    difficulty: str | list[str] | None,
    success: str | None,
    seed: int | None,
    as_json: bool,
    output: Path | None,
    quiet: bool,
    extra_options: dict[str, Any] | None = None,
) -> None:
    """Evaluate, sample, print both and whether they agree; leave with an exit code if not."""
    from bayesatk.io.exports import as_json as tabulated
    from bayesatk.posterior.evaluate import evaluate as run
    from bayesatk.results.result import Result

    show = terminal()
    if (extra_options or {}).get("judge") is not None and pooling == "partial":
        difficulty = difficulty or "beta"  # PyMC samples one family at a time
    fit = run(
        data, metric, pooling=pooling, difficulty=difficulty, success=success, rng=seed,
        **(extra_options or {}),
    )  # fmt: skip
    if not as_json:
        if not quiet:
            show.print(data.card(), highlight=False, markup=False)
        print_result(show, fit)
    if not as_json and not quiet:
        show.print("\nSampling the same model with PyMC (the first run compiles it) ...")
    verification = sampled(
        data,
        metric,
        pooling,
        difficulty,
        success,
        seed,
        quiet or as_json,
        fit,
        extra_options,
        output,
    )
    if as_json:
        document = tabulated(fit)
        checked = tabulated(verification)
        document["tables"] |= checked["tables"]
        print_json(document | {name: checked[name] for name in ("verdict", "family_error")})
    else:
        print_verification(
            show, verification, [fit_metric.label for fit_metric in Result.of(fit).metrics]
        )
    if verification.verdict == "disagree":
        raise typer.Exit(DISAGREE)


def sampled(
    data: Any,
    metric: Any,
    pooling: Pooling,
    difficulty: str | list[str] | None,
    success: str | None,
    seed: int | None,
    quiet: bool,
    fit: Any,
    extra_options: dict[str, Any] | None = None,
    output: Path | None = None,
) -> Any:
    """Sample the model of a closed form and compare the two."""
    from bayesatk.models.sampling import sample
    from bayesatk.verification.verify import verify as verify_result

    shapes: dict[str, Any] = {} if difficulty is None else {"difficulty": difficulty}
    shapes |= extra_options or {}
    sampled = sample(
        data, metric, pooling=pooling, success=success, rng=seed,
        progressbar=not quiet and sys.stderr.isatty(), **shapes,
    )  # fmt: skip
    write(sampled, output)
    return verify_result(fit, sampled)

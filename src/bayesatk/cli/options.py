"""Options that commands share; writing results, errors in one line."""

import json
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from bayesatk.cli.messages import as_options, options_of

Pooling = Literal["partial", "none", "complete"]
BAD_INPUT = 2

Metrics = Annotated[
    list[str],
    typer.Option("--metric", "-m", help="Such as 'pass@1,4', 'pass^4', 'maj@5', 'max@4'."),
]
PoolingOption = Annotated[Pooling, typer.Option(help="Pooling of information between questions.")]
Difficulty = Annotated[
    list[str] | None,
    typer.Option(
        help="Difficulty family under partial pooling: averaged, beta, inflated (some "
        "questions never or always solved), mixture (of two Betas); repeat it for several."
    ),
]
Probability = Annotated[float, typer.Option("--ci-prob", help="Probability of the interval.")]
Kind = Annotated[Literal["eti", "hdi"], typer.Option(help="Kind of interval.")]
Success = Annotated[str | None, typer.Option(help="Rule for success: --success 'score >= 0.5'.")]
JudgeTable = Annotated[
    Path | None,
    typer.Option(
        "--judge",
        help="Table (.csv) of trials of known truth, to correct for errors of the judge: columns "
        "mark and truth, and system if error rates may differ between systems.",
    ),
]
Seed = Annotated[int | None, typer.Option(help="Seed of the draws; recorded in the result.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no data card.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Save as .nc or .zarr (whole), .json, .csv, .tex (tables)."
    ),
]
Rope = Annotated[float, typer.Option(help="Half-width of the region of practical equivalence.")]
GroupWeight = Annotated[
    list[str] | None,
    typer.Option(
        "--group-weight",
        help="Weights of groups in means, with --group: equal, or GROUP=WEIGHT for each; "
        "default: their numbers of questions.",
    ),
]
DEFAULT_T = 10.0
Configurations = Annotated[
    float, typer.Option("--t", "-t", help="Configurations tried (prompts, seeds).")
]
ConfigurationsOfReport = Annotated[
    float | None,
    typer.Option("--t", "-t", help="Configurations tried, for --guess; default: 10."),
]


def twice_marked(table: Path | None) -> Any:
    """Read the trials that were marked twice; labels of systems are text."""
    import pandas as pd

    return None if table is None else pd.read_csv(table, dtype={"system": str})


def one_line_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Turn the library's own refusals into one line on standard error and exit code 2."""
    offered = options_of(command)

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except BrokenPipeError:  # whoever read the output has had enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (ValueError, TypeError, OSError, ImportError) as error:
            print(f"bayesatk: {as_options(error, offered)}", file=sys.stderr)
            raise typer.Exit(BAD_INPUT) from None

    return wrapped


def check_file(name: str | Path) -> None:
    """Refuse a file that is not there; - stands for standard input."""
    if str(name) != "-" and not os.path.exists(name):
        raise FileNotFoundError(f"{name}: there is no such file.")


def pairs(items: list[str] | None, option: str) -> dict[str, str]:
    """Return NAME=VALUE arguments as a mapping."""
    values_by_name: dict[str, str] = {}
    for item in items or []:
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise ValueError(f"{option} must be NAME=VALUE; got {item!r}.")
        if name in values_by_name:
            raise ValueError(f"{option} must name everything once; got {name!r} twice.")
        values_by_name[name] = value
    return values_by_name


def whole_numbers(text: str) -> list[int]:
    """Return numbers that are separated by commas.

    Examples
    --------
    >>> whole_numbers("1,4")
    [1, 4]
    """
    return list(map(int, text.split(",")))


def write(result: Any, output: Path | None, console: Console | None = None) -> None:
    """Save a result in the format that the ending of the name shows."""
    from bayesatk.io.exports import export
    from bayesatk.io.saved import save

    if output is None:
        return
    if output.suffix in (".json", ".csv", ".tex"):
        export(result, output)
    else:
        save(result, output)
    if console is not None:
        console.print(f"Saved {output}", highlight=False, markup=False)


def print_json(value: dict[str, Any]) -> None:
    """Print JSON on standard output."""
    print(json.dumps(value, indent=2, allow_nan=False))


def working(status: str, quiet: bool) -> Any:
    """Show a status on the terminal while something is computed."""
    if quiet or not sys.stderr.isatty():
        return nullcontext()
    return Console(stderr=True).status(status)


def structure(data: Any, formula: Any, weights: list[str] | None) -> dict[str, Any]:
    """Return the covariates or the groups of questions, as options of `bayesatk.evaluate`."""
    has_groups = "group" in data.dataset.coords
    if weights and (formula is not None or not has_groups):
        raise ValueError("--group-weight must be left out without --group, or with a formula.")
    if formula is not None or not has_groups:
        return {"covariates": formula}
    if weights is None or weights in (["equal"], ["questions"]):
        return {"group": "group", "group_weights": weights and weights[0]}
    shares = {name: float(value) for name, value in pairs(weights, "--group-weight").items()}
    return {"group": "group", "group_weights": shares}


def families(difficulty: list[str] | None) -> str | list[str] | None:
    """Return the families that `bayesatk.evaluate` is asked for.

    Examples
    --------
    >>> families(None), families(["averaged"]), families(["beta", "mixture"])
    (None, 'averaged', ['beta', 'mixture'])
    """
    return difficulty[0] if difficulty and len(difficulty) == 1 else difficulty or None

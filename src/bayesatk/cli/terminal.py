"""What the command line prints: the tables of a result, and sentences."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from bayesatk._tools.words import printable

_MOST_LEVELS = 20  # of which the probabilities are printed; files have those of all


class _Output(Console):
    """Standard output, whose closed pipe is an error as any other (Rich would leave with 1)."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def terminal() -> Console:
    """Return standard output; in a pipe sentences are wrapped as in a wide terminal."""
    console = _Output(highlight=False)
    return console if console.is_terminal else _Output(highlight=False, width=160)


def say(console: Console, text: object) -> None:
    """Print text as it stands, without control characters; commands are not broken into lines."""
    for line in str(text).split("\n"):
        is_command = line.lstrip().removeprefix("Next: ").startswith("bayesatk ")
        console.print(printable(line), highlight=False, markup=False, soft_wrap=is_command)


def print_tables(console: Console, *frames: Any) -> None:
    """Print tables within the width of the terminal, or as wide as they are in a pipe."""
    lines: list[str] = []
    for frame in frames:
        views, below = frame.parts() or ([], [])
        for view in views:
            text = view.text(console.width if console.is_terminal else None)
            console.print(text, markup=False, no_wrap=True, overflow="ignore", crop=False)
            console.print()
        lines += below
    for line in dict.fromkeys(lines):
        say(console, line)


def print_result(console: Console, fit: Any) -> None:
    """Print the newest table of a result; of metrics also what the result has beside them."""
    from bayesatk.io.named_tables import names_of, table
    from bayesatk.results.result import Result

    result = Result.of(fit, None)
    frames = [table(result)]
    if frames[0].attrs["analysis"] == "results":
        names = {"categories", "coefficients", "groups"} & {*names_of(result)}
        if result.group("constant_data").sizes.get("category", 0) > _MOST_LEVELS:
            names.discard("categories")
        frames += [table(result, name) for name in sorted(names)]
    print_tables(console, *frames)


def print_verification(console: Console, verification: Any) -> None:
    """Show the quantities that were asked for, and every one that does not agree."""
    from bayesatk.metrics.grid import FAMILIES
    from bayesatk.results.views import ShownTable

    frame = verification.table
    wanted = {*(family.variable for family in FAMILIES.values()), "mean_p", "icc"}
    of_interest = frame["variable"].isin(wanted) | (frame["verdict"] != "agree")
    print_tables(console, ShownTable.of(frame[of_interest], "verification"))
    others = frame["variable"][~of_interest].unique()
    if len(others):
        say(console, f"Not shown: {', '.join(others)}, which agree.")
    say(console, verification.summary())


def print_published_baseline(console: Console, answer: Mapping[str, Any], alpha: float) -> None:
    """Print the expected best guess, and the p-value of a published accuracy if there is one."""
    t, needed = answer["t"], answer["smallest_significant"]
    console.print(
        f"Expected best accuracy of {t:g} random guessers on {answer['n']} questions: "
        f"{answer['expected_best']:.4f}"
    )
    console.print(
        f"Smallest accuracy with a p-value of at most {alpha:g}: "
        + ("none" if needed is None else f"{needed:.4f}")
    )
    if "p_value" in answer:
        p_value = answer["p_value"]
        ends = [f"{end:.3g}" for end in (p_value if isinstance(p_value, tuple) else [p_value])]
        console.print(f"P(best of {t:g} >= {answer['accuracy']:g}): {' to '.join(ends)}")

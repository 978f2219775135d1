"""What the command line prints: tables by their declared columns, and sentences."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console

_MOST_LEVELS = 20  # of which the probabilities are printed; files have those of all


def terminal() -> Console:
    """Return standard output; in a pipe sentences are wrapped as in a wide terminal."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=160)


def say(console: Console, text: object) -> None:
    """Print text as it stands."""
    console.print(text, highlight=False, markup=False)


def print_table(console: Console, *frames: Any) -> None:
    """Print tables within the width of the terminal, or as wide as they are in a pipe."""
    from bayesatk.results.views import blocks, legend, sentences_of

    lines: list[str] = []
    for frame in frames:
        views = blocks(frame, frame.attrs["analysis"])
        for view in views:
            text = view.text(console.width if console.is_terminal else None)
            console.print(text, markup=False, no_wrap=True, overflow="ignore", crop=False)
            console.print()
        lines += [*legend(views, frame), *views[-1].sentences, *sentences_of(frame)]
    for line in dict.fromkeys(lines):
        say(console, line)


def print_tables(console: Console, result: Any, *names: str) -> None:
    """Print those of the tables that a result has."""
    from bayesatk.io.exports import tables_of

    tables = tables_of(result)
    print_table(console, *(tables[name] for name in names if name in tables))


def print_result(console: Console, fit: Any) -> None:
    """Print one row per system, metric and target; then what else the result has."""
    from bayesatk.results.result import Result
    from bayesatk.results.tables import result_table

    result = Result.of(fit)
    few = result.posterior.sizes.get("reached", 0) <= _MOST_LEVELS
    print_tables(console, result, "results", *["categories"] * few, "coefficients")
    if result.grouping is not None:
        rows, metric = result_table(result, by="group"), result.metrics[0].label
        rows = rows[(rows["metric"] == metric) & (rows["target"] == "population")]
        say(console, f"{metric} on questions like these, by group:")
        rows = rows.drop(columns=["metric", "target"])
        print_table(console, rows)
    for note in result.notes:
        say(console, f"Note: {note}")


def print_verification(console: Console, verification: Any, metric_labels: list[str]) -> None:
    """Show the quantities that were asked for, and every one that does not agree."""
    from bayesatk.metrics.grid import FAMILIES

    frame = verification.table
    wanted = {*(family.variable for family in FAMILIES.values()), "mean_p", "icc"}
    of_interest = frame["variable"].isin(wanted) | (frame["verdict"] != "agree")
    shown = frame[of_interest]
    shown.attrs = {"analysis": "verification"}
    print_table(console, shown)
    say(console, verification.summary())


def print_comparison(console: Console, result: Any) -> None:
    """Print the leaderboard, or else tiers in words; pairs and their sentences."""
    from bayesatk.comparison.claims import claim
    from bayesatk.io.exports import tables_of
    from bayesatk.results.result import Result

    compared = Result.of(result)
    tables = tables_of(compared)
    if "comparison" in tables and compared.answers("noise_floor"):
        tables["comparison"] = _with_run_to_run(tables["comparison"], compared)
    print_table(
        console, *(tables[name] for name in ("leaderboard", "comparison") if name in tables)
    )
    if len(compared.systems) > 2 and not compared.has("leaderboard"):
        for metric in compared.metrics:
            say(console, claim(compared, metric))


def _with_run_to_run(rows: Any, result: Any) -> Any:
    """Add by how much two runs of the noisier system of a pair differ in every metric."""
    import numpy as np

    from bayesatk.comparison.checks.noise import MOST_TRIALS, floors_of

    trials = int(np.median(result.trials[result.trials > 0]))
    metrics = [metric for metric in result.metrics if metric.k <= trials <= MOST_TRIALS]
    if not metrics:
        return rows
    floor = {
        (row["metric"], row["system"]): row["floor"]
        for row in floors_of(result, metrics, trials, result.ci_prob)
    }
    cells = zip(rows["metric"], rows["system"], rows["other"], strict=True)
    values = [max(floor.get((metric, name), np.nan) for name in pair) for metric, *pair in cells]
    frame = rows.copy()
    frame.insert(
        rows.columns.get_loc("ci_upper") + 1, "run_to_run",
        np.where(rows["target"] == "questions", values, np.nan),
    )  # fmt: skip
    frame.attrs = rows.attrs
    return frame


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

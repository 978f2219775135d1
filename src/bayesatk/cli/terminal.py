"""What the command line prints: results as tables a person can read."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from bayesatk._tools.words import probability_words

TARGETS = {
    "questions": "these", "population": "like these", "new_groups": "new groups", "": "",
}  # fmt: skip


def terminal() -> Console:
    """Return standard output: as wide as the terminal, or wide enough for any table in a pipe."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=160)


def print_result(console: Console, fit: Any) -> None:
    """Print one row per system, metric and target."""
    from bayesatk.results.result import Result
    from bayesatk.results.tables import table

    result = Result.of(fit)
    frame = table(result)
    several = frame["system"].nunique() > 1
    percent = _percent(result)
    legends = _legends(frame, percent)
    grid = new_grid(
        f"Posterior (pooling={result.pooling}, {result.method})", ["system"] * several,
        ["metric", "target"], ["estimate", "mean", "sd", percent, *legends],
    )  # fmt: skip
    for row in frame.to_dict("records"):
        first = row["target"] == "questions"
        cells = [str(row["system"])] if several and first else [""] if several else []
        cells += [str(row["metric"]) if first else "", TARGETS[str(row["target"])]]
        estimate = row["estimate"]
        cells += ["" if not first else "k>n" if estimate != estimate else f"{estimate:.3f}"]
        cells += [f"{row['mean']:.3f}", f"{row['sd']:.3f}"]
        cells += [f"[{row['ci_lower']:.3f}, {row['ci_upper']:.3f}]"]
        cells += [_cell_of(heading, row, first) for heading in legends]
        grid.add_row(*cells)
    console.print(grid, markup=False)
    for heading, meaning in legends.items():
        console.print(f"{heading}: {meaning}", highlight=False, markup=False)
    if "reach_probability" in result.posterior:
        _print_categories(console, result, percent)
    if result.grouping is not None:
        _print_groups(console, result, percent)
    if result.covariates is not None:
        _print_coefficients(console, result, percent)
    for note in result.notes:
        console.print(f"Note: {note}", highlight=False, markup=False)


def _cell_of(heading: str, row: Mapping[Hashable, Any], first: bool) -> str:
    """Return what a row says under a heading that has a legend."""
    if heading == "prior x":
        ratio = row["prior_sensitivity"]
        return "" if ratio != ratio else f"{ratio:.2f}"
    if heading == "if missing":
        statistic = "mean" if row["estimate_if_wrong"] != row["estimate_if_wrong"] else "estimate"
        low, high = row[f"{statistic}_if_wrong"], row[f"{statistic}_if_right"]
        return f"[{low:.3f}, {high:.3f}]" * first
    low, high = row["range_lower"], row["range_upper"]
    return "" if low != low else f"[{low:.3f}, {high:.3f}]"


def _legends(frame: Any, percent: str) -> dict[str, str]:
    """Return the columns that a table has for k beyond the trials, and what they mean."""
    legends = {}
    if frame["prior_sensitivity"].notna().any():
        legends["prior x"] = (
            "sd under a weaker prior, divided by the sd; far from 1, a value for k > trials "
            "depends mostly on the prior."
        )
    if "mean_if_wrong" in frame:
        legends["if missing"] = (
            "the estimate (the mean where k > n) with every missing outcome wrong, and with every "
            "one right."
        )
    if "range_lower" in frame:
        legends["any shape"] = (
            "range over all difficulty distributions that agree with the counts, "
            f"{percent.split()[0]} confidence; the interval assumes families."
        )
    return legends


def _print_coefficients(console: Console, fit: Any, percent: str) -> None:
    """Print what covariates do to the logit of the success rate."""
    from bayesatk.results.tables import coefficient_table

    frame = coefficient_table(fit)
    several = frame["system"].nunique() > 1
    grid = new_grid(
        "Coefficients of covariates (logits)", [*["system"] * several, "coefficient"],
        numbers=["mean", "sd", percent, "P(> 0)"],
    )  # fmt: skip
    for row in frame.to_dict("records"):
        first = row["coefficient"] == "Intercept"
        cells = [str(row["system"]) if first else ""] if several else []
        cells += [str(row["coefficient"]), *_posterior_cells(row), f"{row['prob_positive']:.3f}"]
        grid.add_row(*cells)
    console.print(grid, markup=False)


def _print_groups(console: Console, result: Any, percent: str) -> None:
    """Print the first metric of every group, on questions like these in it."""
    from bayesatk.results.tables import table

    rows = table(result, by="group")
    metric = result.metrics[0].label
    population_rows = rows[(rows["metric"] == metric) & (rows["target"] == "population")]
    several = len(result.systems) > 1
    grid = new_grid(
        f"{metric} on questions like these, by group", [*["system"] * several, "group"],
        numbers=["questions", "mean", "sd", percent],
    )  # fmt: skip
    for row in population_rows.to_dict("records"):
        grid.add_row(
            *[str(row["system"])] * several, str(row["group"]), str(row["questions"]),
            *_posterior_cells(row),
        )  # fmt: skip
    console.print(grid, markup=False)


def _print_categories(console: Console, fit: Any, percent: str) -> None:
    """Print the probability to reach each category but the lowest."""
    from bayesatk.results.tables import category_table

    frame = category_table(fit)
    frame = frame[frame["score"] > frame["score"].min()]
    several = frame["system"].nunique() > 1
    title = "Probability that a trial reaches a score"
    grid = new_grid(title, ["system"] * several, ["score", "target"], ["mean", "sd", percent])
    for row in frame.to_dict("records"):
        first = row["target"] == "questions"
        cells = [str(row["system"]) if first else ""] if several else []
        cells += [f">= {row['score']:g}" if first else "", TARGETS[str(row["target"])]]
        grid.add_row(*cells, *_posterior_cells(row))
    console.print(grid, markup=False)


def _posterior_cells(row: Mapping[Any, Any]) -> list[str]:
    """Return mean, sd and interval as text."""
    interval = f"[{row['ci_lower']:.3f}, {row['ci_upper']:.3f}]"
    return [f"{row['mean']:.3f}", f"{row['sd']:.3f}", interval]


def new_grid(
    title: str, folded: Sequence[str] = (), words: Sequence[str] = (), numbers: Sequence[str] = ()
) -> Table:
    """Return an empty table with columns of text that may be folded, of words, of numbers."""
    grid = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in folded:
        grid.add_column(heading, overflow="fold")
    for heading in words:
        grid.add_column(heading, no_wrap=True)
    for heading in numbers:
        grid.add_column(heading, justify="right", no_wrap=True)
    return grid


def _percent(result: Any) -> str:
    """Name the interval in the heading of its column."""
    return f"{100 * result.ci_prob:g}% {result.ci_kind.upper()}"


def print_verification(console: Console, verification: Any, metric_labels: list[str]) -> None:
    """Show the quantities that were asked for, and every one that does not agree."""
    frame = verification.table.astype(object).where(verification.table.notna(), "")
    labels = [_quantity(row) for row in frame.to_dict("records")]
    shown = [
        (label, row)
        for label, row in zip(labels, frame.to_dict("records"), strict=True)
        if label in metric_labels
        or row["variable"] in ("mean_p", "icc")
        or row["verdict"] != "agree"
    ]
    several = frame["system"].nunique() > 1
    grid = new_grid(
        "Closed form against PyMC", ["system"] * several, ["quantity", "target"],
        ["exact", "sampled", "z mean", "z sd", "z pit", "R-hat", "ESS"],
    )  # fmt: skip
    grid.add_column("verdict", no_wrap=True)
    for label, row in shown:
        grid.add_row(
            *([str(row["system"])] if several else []), label, TARGETS[str(row.get("target", ""))],
            f"{row['exact_mean']:.3f}", f"{row['sampled_mean']:.3f}", f"{row['z_mean']:+.1f}",
            f"{row['z_sd']:+.1f}", f"{row['z_pit']:+.1f}", f"{row['rhat']:.3f}",
            f"{row['ess']:.0f}", row["verdict"],
        )  # fmt: skip
    console.print(grid, markup=False)
    console.print(verification.summary(), highlight=False, markup=False)


def _quantity(row: Any) -> str:
    """Return the metric as people write it, from its variable, k and tau."""
    from bayesatk.metrics.grid import FAMILIES

    symbols = {family.variable: family.symbol for family in FAMILIES.values()}
    symbol = symbols.get(row["variable"])
    if symbol is None:
        return str(row["variable"])
    label = symbol if row.get("k", "") == "" else f"{symbol}{row['k']:g}"
    return label if row.get("tau", "") == "" else f"{label}:{row['tau']:g}"


def print_leaderboard(console: Console, board: Any) -> None:
    """Print a row per system and metric, ranked on questions like these."""
    from bayesatk.comparison.boards.board import as_text

    for metric in board.result.metrics:
        rows = board.table[board.table["metric"] == metric.label]
        question_rows, population_rows = (
            as_text(rows[rows["target"] == target], board.effective_draws, board.result).to_dict(
                "records"
            )
            for target in ("questions", "population")
        )
        by_system = {row["system"]: row for row in question_rows}
        percent = next(name for name in population_rows[0] if str(name).endswith("interval"))
        grid = new_grid(f"{metric.label}: systems ranked on questions like these")
        grid.add_column("rank", justify="right", no_wrap=True)
        grid.add_column("system", overflow="fold")
        headings = "observed", "these", percent, "like these", percent, "P(best)", "P(top 3)"
        for heading in (*headings, "ranks", "tier"):
            grid.add_column(str(heading), justify="right", no_wrap=True)
        for row in population_rows:
            same = by_system[row["system"]]
            cells = [row["rank"], row["system"], row["observed"], same["mean"], same[percent]]
            cells += [row["mean"], row[percent], row["P(best)"], row["P(top 3)"]]
            grid.add_row(*map(str, [*cells, row["ranks"], row["tier"]]))
        console.print(grid, markup=False)
    console.print(board.legend(), highlight=False, markup=False)


def print_comparison(console: Console, result: Any, tiers: bool = True) -> None:
    """Print a row per pair, metric and target, and the sentences."""
    from bayesatk.comparison.claims import claim
    from bayesatk.comparison.pairs.systems import comparison_table
    from bayesatk.results.result import Result

    compared = Result.of(result, "comparison")
    frame = comparison_table(compared)
    if frame.empty:
        console.print("No comparison is possible: no two systems tried the same question.")
        return
    percent = _percent(compared)
    grid = new_grid(
        "Differences between systems (the first minus the second)", ["pair"],
        ["metric", "target"], ["difference", "sd", percent, "P(better)"],
    )  # fmt: skip
    for row in frame.to_dict("records"):
        first = row["target"] == "questions"
        grid.add_row(
            f"{row['system']} - {row['other']}" if first else "",
            str(row["metric"]) if first else "",
            TARGETS[str(row["target"])],
            f"{row['mean']:+.3f}",
            f"{row['sd']:.3f}",
            f"[{row['ci_lower']:+.3f}, {row['ci_upper']:+.3f}]",
            probability_words(row["prob_greater"], row["monte_carlo_error"]),
        )
    console.print(grid, markup=False)
    for sentence in frame.loc[frame["target"] == "population", "sentence"]:
        console.print(sentence, highlight=False, markup=False)
    if len(compared.systems) > 2 and tiers:
        for metric in compared.metrics:
            console.print(claim(compared, metric), highlight=False, markup=False)


def print_costs(console: Console, costs: Any) -> None:
    """Print what success costs: a row per system and quantity, both targets side by side."""
    from bayesatk.costs.tables import cost_table
    from bayesatk.results.result import Result

    frame = cost_table(costs)
    unit = frame["unit"].max()
    grid = new_grid(
        f"Costs{f' in {unit}' * bool(unit)}: mean, {_percent(Result.of(costs))} interval"
    )
    for heading in ("system", "quantity", "observed", "these questions", "questions like these"):
        grid.add_column(heading, justify="left" if heading in ("system", "quantity") else "right")
    keys, last = ["system", "quantity", "k", "budget"], None
    for (system, name, k, budget), rows in frame.groupby(keys, sort=False, dropna=False):
        level = f"@{k:g}" if k == k else f" {budget:g}" if budget == budget else ""
        observed = rows["estimate"].iloc[0]
        cells = [
            f"{row['mean']:.4g} [{row['ci_lower']:.4g}, {row['ci_upper']:.4g}]"
            for row in rows.to_dict("records")
        ]
        shown = f"{observed:.4g}" if observed == observed else ""
        grid.add_row(str(system) if system != last else "", f"{name}{level}", shown, *cells)
        last = system
    console.print(grid, markup=False)

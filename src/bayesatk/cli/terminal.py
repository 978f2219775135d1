"""What the command line prints: results as tables a person can read.

A table is declared as columns: what each is called, what stands in its cells, how it is set.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from bayesatk._tools.words import probability_words

TARGETS = {
    "questions": "these", "population": "like these", "new_groups": "new groups", "": "",
}  # fmt: skip
Row = Mapping[Any, Any]


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    heading : str
    cell : str or callable, optional
        A format of the numbers of a row by their names, or a function of the row; default: what
        the row has under the heading.
    style : {"number", "word", "name"}
        Numbers are set to the right; names may be folded.
    once : bool
        Whether the cell is blank in rows of what the row above is of.
    """

    heading: str
    cell: str | Callable[[Row], str] = ""
    style: str = "number"
    once: bool = False

    def text(self, row: Row) -> str:
        """Return the text in a row."""
        if not self.cell:
            return str(row[self.heading])
        return self.cell.format(**row) if isinstance(self.cell, str) else self.cell(row)


_STYLES: dict[str, dict[str, Any]] = {
    "number": {"justify": "right", "no_wrap": True},
    "word": {"no_wrap": True},
    "name": {"overflow": "fold"},
}


def terminal() -> Console:
    """Return standard output: as wide as the terminal, or wide enough for any table in a pipe."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=160)


def say(console: Console, text: object) -> None:
    """Print text as it stands."""
    console.print(text, highlight=False, markup=False)


def print_table(
    console: Console,
    title: str,
    columns: Iterable[Column],
    rows: Iterable[Row],
    about: Sequence[str] = (),
) -> None:
    """Print a row of cells for each row; those with the same values of `about` are of one thing."""
    grid = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    columns = list(columns)
    for column in columns:
        grid.add_column(column.heading, **_STYLES[column.style])
    above: list[Any] = []
    for row in rows:
        subject = [row[name] for name in about]
        grid.add_row(
            *(
                "" if column.once and about and subject == above else column.text(row)
                for column in columns
            )
        )
        above = subject
    console.print(grid, markup=False)


def system_column(systems: int = 2, once: bool = True) -> list[Column]:
    """Return the column of systems, where there are several."""
    return [Column("system", style="name", once=once)] * (systems > 1)


_MOST_LEVELS = 20  # of which the probabilities are printed; files have those of all
_TARGET = Column("target", lambda row: TARGETS[str(row.get("target", ""))], "word")
_METRIC = Column("metric", style="word", once=True)


def _posterior(result: Any) -> list[Column]:
    """Return the columns of mean, sd and interval, which is named in its heading."""
    return [
        Column("mean", "{mean:.3f}"),
        Column("sd", "{sd:.3f}"),
        Column(_percent(result), "[{ci_lower:.3f}, {ci_upper:.3f}]"),
    ]


def _percent(result: Any) -> str:
    return f"{100 * result.ci_prob:g}% {result.ci_kind.upper()}"


def print_result(console: Console, fit: Any) -> None:
    """Print one row per system, metric and target; then what else the result has."""
    from bayesatk.results.result import Result
    from bayesatk.results.tables import category_table, coefficient_table, table

    result = Result.of(fit)
    frame, posterior = table(result), _posterior(result)
    legends = _legends(frame, result)
    systems = system_column(frame["system"].nunique())
    columns = [
        *systems, _METRIC, _TARGET,
        Column("estimate", lambda row: _number_text(row["estimate"], absent="k>n"), once=True),
        *posterior, *(column for column, _ in legends),
    ]  # fmt: skip
    title = f"Posterior (pooling={result.pooling}, {result.method})"
    print_table(console, title, columns, frame.to_dict("records"), ["system", "metric"])
    for column, meaning in legends:
        say(console, f"{column.heading}: {meaning}")
    if 0 < result.posterior.sizes.get("reached", 0) <= _MOST_LEVELS:
        rows = category_table(result)
        higher = result.scale.direction > 0
        rows = rows[rows["score"] != (rows["score"].min() if higher else rows["score"].max())]
        score = Column("score", f"{'>=' if higher else '<='} {{score:g}}", "word", once=True)
        print_table(
            console, "Probability that a trial reaches a score",
            [*systems, score, _TARGET, *posterior], rows.to_dict("records"), ["system", "score"],
        )  # fmt: skip
    if result.grouping is not None:
        _print_groups(console, result, posterior)
    if result.covariates is not None:
        columns = [*systems, Column("coefficient", style="name"), *posterior]
        print_table(
            console, "Coefficients of covariates (logits)",
            [*columns, Column("P(> 0)", "{prob_positive:.3f}")],
            coefficient_table(result).to_dict("records"), ["system"],
        )  # fmt: skip
    for note in result.notes:
        say(console, f"Note: {note}")


def _legends(frame: Any, result: Any) -> list[tuple[Column, str]]:
    """Return the columns that not every table has, and what they mean."""
    legends = [
        (
            "prior_sensitivity",
            Column("prior x", lambda row: _number_text(row["prior_sensitivity"], 2)),
            "sd under a weaker prior, divided by the sd; far from 1, a value for k > trials "
            "depends mostly on the prior.",
        ),
        (
            "mean_if_wrong",
            Column("if missing", _if_missing, once=True),
            "the estimate (the mean where k > n) with every missing outcome wrong, and with every "
            "one right.",
        ),
        (
            "range_lower",
            Column("any shape", lambda row: _range(row["range_lower"], row["range_upper"])),
            "range over all difficulty distributions that agree with the counts, "
            f"{100 * result.ci_prob:g}% confidence; the interval assumes families.",
        ),
    ]
    return [
        (column, meaning)
        for name, column, meaning in legends
        if name in frame and frame[name].notna().any()
    ]


def _number_text(value: float, places: int = 3, absent: str = "") -> str:
    """Write a number, or what stands where there is none."""
    return absent if value != value else f"{value:.{places}f}"


def _range(low: float, high: float) -> str:
    return "" if low != low else f"[{low:.3f}, {high:.3f}]"


def _if_missing(row: Row) -> str:
    statistic = "mean" if row["estimate_if_wrong"] != row["estimate_if_wrong"] else "estimate"
    return _range(row[f"{statistic}_if_wrong"], row[f"{statistic}_if_right"])


def _print_groups(console: Console, result: Any, posterior: list[Column]) -> None:
    """Print the first metric of every group, on questions like these in it."""
    from bayesatk.results.tables import table

    rows, metric = table(result, by="group"), result.metrics[0].label
    rows = rows[(rows["metric"] == metric) & (rows["target"] == "population")]
    columns = [
        *system_column(len(result.systems), once=False), Column("group", style="name"),
        Column("questions"), *posterior,
    ]  # fmt: skip
    title = f"{metric} on questions like these, by group"
    print_table(console, title, columns, rows.to_dict("records"))


def print_verification(console: Console, verification: Any, metric_labels: list[str]) -> None:
    """Show the quantities that were asked for, and every one that does not agree."""
    frame = verification.table.astype(object).where(verification.table.notna(), "")
    rows = [row | {"quantity": _quantity(row)} for row in frame.to_dict("records")]
    wanted = {*metric_labels, "mean_p", "icc"}
    columns = [
        *system_column(frame["system"].nunique()), Column("quantity", style="word"),
        _TARGET, Column("exact", "{exact_mean:.3f}"), Column("sampled", "{sampled_mean:.3f}"),
        Column("z mean", "{z_mean:+.1f}"), Column("z sd", "{z_sd:+.1f}"),
        Column("z pit", "{z_pit:+.1f}"), Column("R-hat", "{rhat:.3f}"), Column("ESS", "{ess:.0f}"),
        Column("verdict", style="word"),
    ]  # fmt: skip
    shown = [row for row in rows if row["quantity"] in wanted or row["verdict"] != "agree"]
    print_table(console, "Closed form against PyMC", columns, shown)
    say(console, verification.summary())


def _quantity(row: Row) -> str:
    """Return the metric as people write it, from its variable, k and tau."""
    from bayesatk.metrics.grid import FAMILIES

    symbols = {family.variable: family.symbol for family in FAMILIES.values()}
    symbol = symbols.get(row["variable"])
    if symbol is None:
        return str(row["variable"])
    label = symbol if row.get("k", "") == "" else f"{symbol}{row['k']:g}"
    return label if row.get("tau", "") == "" else f"{label}:{row['tau']:g}"


def _held(name: str, row: Row) -> str:
    return str(row[name])


def print_leaderboard(console: Console, board: Any) -> None:
    """Print a row per system and metric, ranked on questions like these."""
    from bayesatk.results.analyses import analysis_table, readable_board

    table = analysis_table(board, "leaderboard")
    for metric, rows in table.groupby("metric", sort=False):
        of_these, of_others = (
            readable_board(rows[rows["target"] == target], table.attrs)
            for target in ("questions", "population")
        )
        percent = next(str(name) for name in of_others if str(name).endswith("interval"))
        pair = of_these.set_index("system")[["mean", percent]].add_prefix("these ")
        columns = [
            Column("rank"), Column("system", style="name"),
            Column("observed"), Column("these", "{these mean}"),
            Column(percent, partial(_held, f"these {percent}")), Column("like these", "{mean}"),
            *map(Column, (percent, "P(best)", "P(top 3)", "ranks", "tier")),
        ]  # fmt: skip
        print_table(
            console, f"{metric}: systems ranked on questions like these", columns,
            of_others.join(pair, on="system").to_dict("records"),
        )  # fmt: skip
    for sentence in table.sentences:
        say(console, sentence)


def print_comparison(console: Console, result: Any, tiers: bool = True) -> None:
    """Print a row per pair, metric and target, and the sentences."""
    from bayesatk.comparison.claims import claim
    from bayesatk.comparison.pairs.systems import comparison_table
    from bayesatk.results.result import Result

    compared = Result.of(result, "comparison")
    frame = comparison_table(compared)
    columns = [
        Column("pair", "{system} - {other}", "name", once=True), _METRIC, _TARGET,
        Column("difference", "{mean:+.3f}"), Column("sd", "{sd:.3f}"),
        Column(_percent(compared), "[{ci_lower:+.3f}, {ci_upper:+.3f}]"),
        Column(
            "P(better)",
            lambda row: probability_words(row["prob_greater"], row["monte_carlo_error"]),
        ),
    ]  # fmt: skip
    print_table(
        console, "Differences between systems (the first minus the second)", columns,
        frame.to_dict("records"), ["system", "other", "metric"],
    )  # fmt: skip
    for sentence in frame.loc[frame["target"] == "population", "sentence"]:
        say(console, sentence)
    if len(compared.systems) > 2 and tiers:
        for metric in compared.metrics:
            say(console, claim(compared, metric))


def print_costs(console: Console, costs: Any) -> None:
    """Print what success costs: a row per system and quantity, both targets side by side."""
    from bayesatk.costs.tables import cost_table
    from bayesatk.results.result import Result

    frame = cost_table(costs)
    unit, rows = frame["unit"].max(), []
    keys = ["system", "quantity", "k", "budget"]
    for (system, name, k, budget), targets in frame.groupby(keys, sort=False, dropna=False):
        level = f"@{k:g}" if k == k else f" {budget:g}" if budget == budget else ""
        observed = targets["estimate"].iloc[0]
        of_these, of_others = (
            f"{row['mean']:.4g} [{row['ci_lower']:.4g}, {row['ci_upper']:.4g}]"
            for row in targets.to_dict("records")
        )
        rows.append(
            {
                "system": system, "quantity": f"{name}{level}", "these": of_these,
                "observed": f"{observed:.4g}" if observed == observed else "", "like": of_others,
            }
        )  # fmt: skip
    columns = [
        *system_column(), Column("quantity", style="name"),
        Column("observed"), Column("these questions", "{these}"),
        Column("questions like these", "{like}"),
    ]  # fmt: skip
    title = f"Costs{f' in {unit}' * bool(unit)}: mean, {_percent(Result.of(costs))} interval"
    print_table(console, title, columns, rows, ["system"])


def print_baseline(console: Console, result: Any) -> None:
    """Print one row per system: accuracy, expected best guess, and what follows."""
    from bayesatk.guessing.baseline import baseline_table
    from bayesatk.results.result import Result

    t = Result.of(result, "random_baseline").group("random_baseline").attrs["t"]
    columns = [
        *system_column(), Column("accuracy", "{observed_accuracy:.3f}"),
        Column("best guess", "{expected_best:.3f}"), Column("p-value", "{p_value:.2g}"),
        Column("P(these)", lambda row: probability_words(row["prob_exceeds_questions"])),
        Column("P(like)", lambda row: probability_words(row["prob_exceeds_population"])),
        Column("P(run)", lambda row: probability_words(row["prob_beats"], row["prob_beats_error"])),
        Column("if selected", "{selected_mean:.3f}"),
    ]  # fmt: skip
    rows = baseline_table(result).to_dict("records")
    print_table(console, f"Against the best of {t:g} random guessers", columns, rows)
    say(
        console,
        "best guess: expected best accuracy of the guessers. P(these), P(like): that the true "
        "accuracy on these questions, and on questions like these, exceeds it. P(run): that a new "
        "run beats a new best of the guessers. if selected: selection-adjusted accuracy, if the "
        f"system is itself the best of {t:g} configurations of equal skill.",
    )


def print_published_baseline(console: Console, answer: Row, alpha: float) -> None:
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


def print_plan(console: Console, table: Any, metric: str) -> None:
    """Print one row per number of trials (and of questions of a group); the cheapest is marked."""
    grouped = "groups" in table
    counted = "groups" if grouped else "questions"

    def reached(name: str, form: str) -> Callable[[Row], str]:
        return lambda row: form.format(row[name]) if row[counted] != float("inf") else "-"

    def remark(row: Row) -> str:
        cheapest = "fewest trials" if row.get("cheapest") else ""
        return "best" if row.get("best") else cheapest

    columns = [Column("trials each", "{trials}")]
    columns += [Column("questions each", "{questions}")] * grouped
    columns += [Column(name, reached(name, "{:,.0f}")) for name in (counted, "total")]
    columns += [Column("cost", reached("cost", "{:,.4g}"))] * ("cost" in table)
    columns.append(Column("width", reached("width", "{:.3f}") if grouped else "{width:.3f}"))
    if not grouped and table["prob_correct"].notna().any():
        columns.append(Column("P(right call)", "{prob_correct:.3f}"))
    columns.append(Column("", remark, "word"))
    title = f"{counted.capitalize()} needed for {metric}"
    print_table(console, title, columns, table.to_dict("records"))
    if not grouped and (table["questions"] == float("inf")).any():
        say(console, "-: no number of questions is enough with so few trials of each.")

"""``bayesatk plan``: how many questions and trials, from a pilot or a stated difficulty."""

from functools import partial
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from bayesatk.cli.actions import deliver
from bayesatk.cli.options import (
    AsJson,
    GroupWeight,
    Output,
    Quiet,
    Success,
    families,
    pairs,
    structure,
    whole_numbers,
    working,
)
from bayesatk.cli.reading import reads_data
from bayesatk.cli.terminal import new_grid

EXAMPLES = (
    "Examples: bayesatk plan pilot.csv -m pass@4 --width 0.1; bayesatk plan -m pass@1 "
    "--difficulty a=0.6,0.3 --difficulty b=0.65,0.3 --prob-correct 0.9"
)


def check_plan(files: list[str] | None, difficulty: list[str] | None, **_: Any) -> None:
    """Refuse a plan from nothing, or from two things."""
    stated = any("=" in text for text in difficulty or [])
    if stated == bool(files):
        raise ValueError("give a pilot FILE or --difficulty SYSTEM=MEAN,ICC, one of the two.")
    if stated:
        pairs(difficulty, "--difficulty")


@reads_data(optional=True, check=check_plan)
def plan(
    data: Any,
    metric: Annotated[str, typer.Option("--metric", "-m", help="One metric, such as 'pass@4'.")],
    difficulty: Annotated[
        list[str] | None,
        typer.Option(
            help="In place of a pilot: --difficulty SYSTEM=MEAN,ICC, once or twice. With a pilot: "
            "averaged, beta, inflated or mixture, the shape of its difficulties."
        ),
    ] = None,
    width: Annotated[float | None, typer.Option(help="Desired width of the interval.")] = None,
    prob_correct: Annotated[
        float | None,
        typer.Option(help="Desired probability that the better of two systems is ahead."),
    ] = None,
    target: Annotated[
        Literal["population", "questions", "new_groups"],
        typer.Option(help="Questions like these, these questions, or new groups (--group)."),
    ] = "population",
    price: Annotated[
        float | None, typer.Option(help="Cost of a trial, summed over systems.")
    ] = None,
    spend: Annotated[float | None, typer.Option(help="Budget of the evaluation.")] = None,
    trials: Annotated[str, typer.Option(help="Trials per question to consider.")] = "1,2,4,8,16",
    questions: Annotated[
        str | None, typer.Option(help="With --group: questions per group to consider, as 5,10.")
    ] = None,
    correlation: Annotated[
        float, typer.Option(help="Correlation of the difficulties of two systems.")
    ] = 0.0,
    group_weight: GroupWeight = None,
    success: Success = None,
    as_json: AsJson = False,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Find numbers of questions and trials, from a pilot or a stated difficulty."""
    from bayesatk.comparison.plans.planning import plan as draw_up
    from bayesatk.metrics.grid import parse
    from bayesatk.posterior.evaluate import evaluate as run

    source: Any
    if data is None:
        stated = pairs(difficulty, "--difficulty")
        source = {
            name: [float(number) for number in text.split(",")] for name, text in stated.items()
        }
    else:
        voted = any(parsed_metric.voted for parsed_metric in parse(metric))
        source = run(
            data, metric, pooling="none" if voted else "partial",
            difficulty=families(difficulty), success=success, rng=0,
            **structure(data, None, group_weight),
        )  # fmt: skip
    with working("Planning ...", quiet or as_json):
        table = draw_up(
            source, metric, width=width, prob_correct=prob_correct, target=target,
            trials=whole_numbers(trials), correlation=correlation, price=price, spend=spend,
            questions=None if questions is None else whole_numbers(questions),
        )  # fmt: skip
    deliver(table, output, as_json, partial(print_plan, metric=metric))


def print_plan(console: Console, table: Any, metric: str) -> None:
    """Print one row per number of trials; the cheapest design is marked."""
    if "groups" in table:
        _print_group_plan(console, table, metric)
        return
    two = table["prob_correct"].notna().any()
    money = "cost" in table
    headings = ["trials each", "questions", "total", *(["cost"] if money else []), "width"]
    headings += ["P(right call)"] if two else []
    grid = new_grid(f"Questions needed for {metric}", numbers=headings)
    grid.add_column(no_wrap=True)
    for row in table.to_dict("records"):
        reached = row["questions"] != float("inf")
        cells = [f"{row['trials']}"]
        cells += [f"{row[name]:,.0f}" if reached else "-" for name in ("questions", "total")]
        cells += [f"{row['cost']:,.4g}" if reached else "-"] if money else []
        cells += [f"{row['width']:.3f}"] + ([f"{row['prob_correct']:.3f}"] if two else [])
        remark = "best" if row.get("best") else "fewest trials" if row.get("cheapest") else ""
        grid.add_row(*cells, remark)
    console.print(grid, markup=False)
    if (table["questions"] == float("inf")).any():
        console.print(
            "-: no number of questions is enough with so few trials of each.",
            highlight=False,
            markup=False,
        )


def _print_group_plan(console: Console, table: Any, metric: str) -> None:
    """Print one row per number of trials and of questions of a group."""
    headings = ("trials each", "questions each", "groups", "total", "width")
    grid = new_grid(f"Groups needed for {metric}", numbers=headings)
    grid.add_column(no_wrap=True)
    for row in table.to_dict("records"):
        reached = row["groups"] != float("inf")
        cells = [f"{row['trials']}", f"{row['questions']}"]
        cells += [f"{row[name]:,.0f}" if reached else "-" for name in ("groups", "total")]
        cells += [f"{row['width']:.3f}" if reached else "-"]
        grid.add_row(*cells, "fewest trials" if row["cheapest"] else "")
    console.print(grid, markup=False)

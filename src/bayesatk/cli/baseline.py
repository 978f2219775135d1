"""``bayesatk baseline``: systems, or a published accuracy, against the best random guesser."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bayesatk._tools.words import probability_words
from bayesatk.cli.actions import deliver
from bayesatk.cli.options import (
    DEFAULT_T,
    AsJson,
    Configurations,
    Difficulty,
    Output,
    PoolingOption,
    Quiet,
    Seed,
    Success,
    families,
    pairs,
    print_json,
    working,
)
from bayesatk.cli.reading import reads_data
from bayesatk.cli.terminal import new_grid, terminal

EXAMPLES = (
    "Examples: bayesatk baseline runs.csv --guess 0.25 -t 10; bayesatk baseline --n 100 "
    "--guess 0.5 -t 10 --accuracy 0.6"
)


def chances(guess: float | None, labels: list[str] | None) -> float | dict[int, int]:
    """Return the probability of guessing, from one of the two ways to say it."""
    if (guess is None) == (labels is None):
        raise ValueError("give either --guess PROBABILITY or --labels LABELS=QUESTIONS.")
    if guess is not None:
        return guess
    questions_by_labels = pairs(labels, "--labels")
    if not all(text.isdecimal() for pair in questions_by_labels.items() for text in pair):
        raise ValueError(
            f"--labels must be LABELS=QUESTIONS, whole numbers; got {questions_by_labels}."
        )
    return {int(name): int(value) for name, value in questions_by_labels.items()}


def check_baseline(
    files: list[str] | None,
    guess: float | None,
    labels: list[str] | None,
    questions: int | None,
    accuracy: float | None,
    decimals: int | None,
    output: Path | None,
    **_: Any,
) -> None:
    """Refuse options of the baseline that do not go together."""
    p = chances(guess, labels)
    if files and (questions is not None or accuracy is not None or decimals is not None):
        raise ValueError("--n, --accuracy and --decimals go without a FILE, which has them.")
    if not files and output is not None:
        raise ValueError("--output goes with a FILE; without one use --json.")
    if not files:
        _number_of_questions(questions, p)


def _number_of_questions(questions: int | None, p: float | dict[int, int]) -> int:
    """Return the number of questions of a published accuracy."""
    if questions is not None:
        return questions
    if isinstance(p, dict):
        return sum(p.values())
    raise ValueError("give a FILE, or --n QUESTIONS with --guess.")


@reads_data(optional=True, check=check_baseline)
def baseline(
    data: Any,
    guess: Annotated[
        float | None, typer.Option("--guess", "-p", help="Probability of guessing right.")
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option("--labels", help="Number of questions by number of labels: --labels 4=80."),
    ] = None,
    configurations: Configurations = DEFAULT_T,
    questions: Annotated[int | None, typer.Option("--n", "-n", help="Number of questions.")] = None,
    accuracy: Annotated[
        float | None, typer.Option(help="Accuracy of the best configuration.")
    ] = None,
    decimals: Annotated[
        int | None, typer.Option(help="Decimals that --accuracy was rounded to.")
    ] = None,
    correlation: Annotated[
        float, typer.Option(help="Correlation of configurations, 0 to 1.")
    ] = 0.0,
    alpha: Annotated[float, typer.Option(help="Level of significance.")] = 0.05,
    pooling: PoolingOption = "partial",
    difficulty: Difficulty = None,
    success: Success = None,
    seed: Seed = None,
    as_json: AsJson = False,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Compare systems, or a published accuracy, with the best of t random guessers."""
    p = chances(guess, labels)
    if data is None:
        options = {"decimals": decimals, "correlation": correlation}
        published_baseline(p, questions, configurations, accuracy, alpha, as_json, options)
        return
    from bayesatk.guessing.baseline import random_baseline
    from bayesatk.posterior.evaluate import evaluate as run

    with working("Comparing with random guessers ...", quiet or as_json):
        fit = run(
            data if success is None else data.with_success(success), "bayes", pooling=pooling,
            difficulty=families(difficulty), rng=seed,
        )  # fmt: skip
        result = random_baseline(
            fit, p, configurations, correlation=correlation, alpha=alpha, rng=seed
        )
    deliver(result, output, as_json, print_baseline)


def published_baseline(
    p: float | dict[int, int],
    questions: int | None,
    t: float,
    accuracy: float | None,
    alpha: float,
    as_json: bool,
    options: dict[str, Any],
) -> None:
    """Print the expected best, and the p-value of an accuracy, from numbers alone."""
    from bayesatk.guessing.max_random import MaxOrderStatisticPoissonBinomial

    questions = _number_of_questions(questions, p)
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
        print_json(answer)
        return
    console = terminal()
    console.print(
        f"Expected best accuracy of {t:g} random guessers on {questions} questions: "
        f"{answer['expected_best']:.4f}"
    )
    console.print(
        f"Smallest accuracy with a p-value of at most {alpha:g}: "
        + ("none" if needed != needed else f"{needed:.4f}")
    )
    if accuracy is not None:
        p_value = answer["p_value"]
        ends = [f"{end:.3g}" for end in (p_value if isinstance(p_value, tuple) else [p_value])]
        console.print(f"P(best of {t:g} >= {accuracy:g}): {' to '.join(ends)}")


def print_baseline(console: Console, result: Any) -> None:
    """Print one row per system: accuracy, expected best guess, and what follows."""
    from bayesatk.guessing.baseline import baseline_table
    from bayesatk.results.result import Result

    attrs = Result.of(result, "random_baseline").group("random_baseline").attrs
    headings = "accuracy", "best guess", "p-value", "P(these)", "P(like)", "P(run)", "if selected"
    title = f"Against the best of {attrs['t']:g} random guessers"
    grid = new_grid(title, ["system"], numbers=headings)
    for row in baseline_table(result).to_dict("records"):
        grid.add_row(
            str(row["system"]),
            f"{row['observed_accuracy']:.3f}",
            f"{row['expected_best']:.3f}",
            f"{row['p_value']:.2g}",
            probability_words(row["prob_exceeds_questions"]),
            probability_words(row["prob_exceeds_population"]),
            probability_words(row["prob_beats"], row["prob_beats_error"]),
            f"{row['selected_mean']:.3f}",
        )
    console.print(grid, markup=False)
    console.print(
        "best guess: expected best accuracy of the guessers. P(these), P(like): that the true "
        "accuracy on these questions, and on questions like these, exceeds it. P(run): that a new "
        "run beats a new best of the guessers. if selected: selection-adjusted accuracy, if the "
        f"system is itself the best of {attrs['t']:g} configurations of equal skill.",
        highlight=False,
        markup=False,
    )

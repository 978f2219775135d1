"""``bayesatk gate``: the verdict of a policy, or its error rates before any data."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from bayesatk.cli.options import AsJson, Quiet, check_file, print_json, working
from bayesatk.cli.reading import reads_data

EXAMPLES = (
    "Examples: bayesatk gate new/ --baseline main/ --policy gate.toml; bayesatk gate --policy "
    "gate.toml --design --difficulty 0.6,0.3 --questions 200 --trials 4"
)


def load_new(source: Any, baseline: Path, **options: Any) -> Any:
    """Read the new system, and with it the baseline."""
    from bayesatk.io.load import load

    if isinstance(source, dict):
        raise ValueError("files must go without NAME= here: they are of the new system.")
    return load({"new": source, "baseline": str(baseline)}, **options)


def check_gate(
    files: list[str] | None,
    policy: Path,
    baseline: Path | None,
    design: bool,
    difficulty: str | None,
    questions: int | None,
    trials: int | None,
    **_: Any,
) -> None:
    """Refuse what does not go together, before anything is read."""
    check_file(policy)
    stated = [difficulty, questions, trials]
    if design and (files or baseline is not None or None in stated):
        raise ValueError(
            "--design takes --difficulty MEAN,ICC, --questions and --trials, and no FILE."
        )
    if not design and (not files or baseline is None or stated != [None] * 3):
        raise ValueError(
            "give FILE of the new system and --baseline FILE; or --design, which alone takes "
            "--difficulty, --questions and --trials."
        )
    if baseline is not None:
        check_file(baseline)


def mean_and_icc(text: str) -> list[float]:
    """Return mean and intraclass correlation.

    Examples
    --------
    >>> mean_and_icc("0.6,0.3")
    [0.6, 0.3]
    """
    try:
        mean, icc = (float(number) for number in text.split(","))
    except ValueError:
        raise ValueError(f"--difficulty must be MEAN,ICC; got {text!r}. Try 0.6,0.3.") from None
    return [mean, icc]


@reads_data(
    optional=True, check=check_gate, read=load_new, without=("shared",), endings=(".json", ".md")
)
def gate(
    data: Any,
    policy: Annotated[Path, typer.Option(help="The rules, a TOML file.")],
    baseline: Annotated[Path | None, typer.Option(help="File or folder of the baseline.")] = None,
    design: Annotated[
        bool,
        typer.Option("--design", help="Before any data: how often verdicts change, and power."),
    ] = False,
    difficulty: Annotated[
        str | None, typer.Option(help="For --design: MEAN,ICC of the baseline.")
    ] = None,
    questions: Annotated[
        int | None, typer.Option(help="For --design: number of questions of a run.")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help="For --design: trials of each question.")
    ] = None,
    only_shared: Annotated[
        bool, typer.Option("--shared", help="Use the questions that both systems tried.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")
    ] = False,
    as_json: AsJson = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save as .json, or as .md to read.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Decide whether a new system passes; exit code 0 pass, 1 fail, 3 inconclusive."""
    from bayesatk.comparison.gates.gate import Gate, gate_of
    from bayesatk.comparison.gates.policy import GatePolicy
    from bayesatk.comparison.gates.rates import GateDesign, gate_design

    rules, code = GatePolicy.read(policy), 0
    answer: Gate | GateDesign
    if difficulty is None:  # check_gate has seen to the rest
        outcomes = data(baseline)
        with working("Deciding ...", quiet or as_json):
            answer = gate_of(outcomes, rules, shared=only_shared, rng=seed)
        code = answer.exit_code
    else:
        mean_icc = mean_and_icc(difficulty)
        with working("Working out error rates ...", quiet or as_json):
            answer = gate_design(rules, mean_icc, questions=questions, trials=trials)
    if output is not None:
        as_text = output.suffix == ".md"
        text = answer.markdown() if as_text else json.dumps(answer.as_dict(), indent=2) + "\n"
        output.write_text(text, encoding="utf-8")
    if as_json:
        print_json(answer.as_dict())
    else:
        print(answer.markdown() if markdown else answer)
    raise typer.Exit(code)

"""``bayesatk plan``, ``guess`` and ``gate``: decisions from data, or before any."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from typer import Exit

from bayesatk.cli.options import (
    DEFAULT_T,
    RESULTS,
    Delivery,
    Evaluation,
    Reading,
    check_file,
    check_output,
    families,
    numbers_between_commas,
    outcomes_of_systems,
    pairs,
    print_json,
    working,
)
from bayesatk.cli.terminal import (
    print_published_baseline,
    terminal,
)

_GATE_ENDINGS = (".json", ".md")


def plan(
    reading: Reading,
    delivery: Delivery,
    metric: str = "pass@1",
    difficulty: list[str] | None = None,
    width: float | None = None,
    prob_correct: float | None = None,
    prob_ahead: float | None = None,
    target: Literal["population", "questions"] = "population",
    trials: str = "1,2,4,8,16",
    correlation: float | None = None,
    population: Literal["law", "bootstrap"] | None = None,
) -> None:
    """Find numbers of questions and trials, from a pilot or a stated difficulty.

    Parameters
    ----------
    metric : -m
        One metric, such as 'pass@4'.
    difficulty
        In place of a pilot: --difficulty MEAN,ICC, or SYSTEM=MEAN,ICC twice. With a pilot:
        averaged, beta, inflated or mixture, the shape of its difficulties.
    width
        Desired width of the interval.
    prob_correct
        Desired probability that the better of two systems has the higher posterior mean.
    prob_ahead
        Desired probability that 'compare' declares the better of two systems ahead.
    target
        Questions like these, or these questions.
    trials
        Trials per question to consider.
    correlation
        Correlation of the difficulties of two systems; default: that of the pilot, else 0.
    """
    by_statement = any("," in text or not reading.files for text in difficulty or [])
    if by_statement == bool(reading.files):
        raise ValueError("give a pilot FILE or --difficulty MEAN,ICC, one of the two.")
    if by_statement and reading.system:
        raise ValueError("--system chooses systems of a FILE; name them in --difficulty instead.")
    source: Any = _stated_difficulty(difficulty or []) if by_statement else None
    check_output(delivery.output, reading.files)
    data = None if by_statement else reading.load(delivery.output)
    from bayesatk.comparison.plans.planning import plan as draw_up
    from bayesatk.posterior.evaluate import evaluate

    if data is not None:
        source = evaluate(
            data,
            metric,
            difficulty=families(difficulty),
            population=population,
            rng=0,
            covariates=reading.covariate,
        )
    with working("Planning ...", delivery.silent):
        tree = draw_up(
            source,
            metric,
            width=width,
            prob_correct=prob_correct,
            prob_ahead=prob_ahead,
            target=target,
            trials=numbers_between_commas(trials),
            correlation=correlation,
        )
    delivery.deliver(tree)


def guessers(
    reading: Reading,
    evaluation: Evaluation,
    delivery: Delivery,
    guess: float | None = None,
    labels: list[str] | None = None,
    t: float = DEFAULT_T,
    n: int | None = None,
    accuracy: float | None = None,
    decimals: int | None = None,
    correlation: float = 0.0,
    alpha: float = 0.05,
) -> None:
    """Compare systems, or a published accuracy, with the best of t random guessers.

    Parameters
    ----------
    guess : -p
        Probability of guessing right.
    labels
        Number of questions by number of labels: --labels 4=80.
    t : -t
        Configurations tried (prompts, seeds).
    n : -n
        Number of questions.
    accuracy
        Accuracy of the best configuration.
    decimals
        Decimals that --accuracy was rounded to.
    correlation
        Correlation of configurations, 0 to 1.
    alpha
        Level of significance.
    """
    p = _chances(guess, labels)
    if not reading.files:
        n = sum(p.values()) if n is None and isinstance(p, dict) else n
        if delivery.output is not None:
            raise ValueError("--output goes with a FILE; without one use --json.")
        if n is None:
            raise ValueError("give a FILE, or --n QUESTIONS with --guess.")
        answer = _published_baseline(p, n, t, accuracy, decimals, correlation, alpha)
        if delivery.as_json:
            print_json(answer)
        else:
            print_published_baseline(terminal(), answer, alpha)
        return
    if n is not None or accuracy is not None or decimals is not None:
        raise ValueError("--n, --accuracy and --decimals go without a FILE, which has them.")
    data = reading.load(delivery.output)
    from bayesatk.guessing.baseline import random_baseline
    from bayesatk.posterior.evaluate import evaluate

    with working("Comparing with random guessers ...", delivery.silent):
        fit = evaluate(
            data,
            "mean",
            pooling=evaluation.pooling,
            difficulty=families(evaluation.difficulty),
            rng=evaluation.seed,
        )
        result = random_baseline(
            fit, p, t, correlation=correlation, alpha=alpha, rng=evaluation.seed
        )
    delivery.deliver(result)


def _chances(guess: float | None, labels: list[str] | None) -> float | dict[int, int]:
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


def _published_baseline(
    p: float | dict[int, int],
    n: int,
    t: float,
    accuracy: float | None,
    decimals: int | None,
    correlation: float,
    alpha: float,
) -> dict[str, Any]:
    """Return the expected best, and the p-value of an accuracy, from numbers alone."""
    from bayesatk.guessing.max_random import MaxOrderStatisticPoissonBinomial

    law = MaxOrderStatisticPoissonBinomial(n, p)
    needed = law.smallest_significant(t, alpha=alpha, correlation=correlation)
    answer: dict[str, Any] = {
        "n": n,
        "t": t,
        "expected_best": law.max_random_baseline(t, correlation=correlation),
        "smallest_significant": None if needed != needed else needed,
    }
    if accuracy is not None:
        p_value = law.p_value(accuracy, t, decimals=decimals, correlation=correlation)
        answer |= {"accuracy": accuracy, "p_value": p_value}
    return answer


def ranked(fit: Any, rope: float, pairs: bool) -> Any:
    """Compare the pairs of up to four systems; rank more, whose pairs `pairs` or a ROPE ask for."""
    from bayesatk.comparison.boards.leaderboard import leaderboard
    from bayesatk.comparison.pairs.systems import compare
    from bayesatk.results.result import Result

    result = Result.of(fit)
    few = len(result.systems) <= 4 or not result.tabulated  # costs are compared in pairs alone
    if few or not (pairs or rope):
        return compare(fit, rope=rope) if few else leaderboard(fit)
    return compare(leaderboard(fit), rope=rope)


def gate(
    reading: Reading,
    baseline: Path | None = None,
    metric: str | None = None,
    margin: float | None = None,
    policy: Path | None = None,
    init: bool = False,
    design: bool = False,
    difficulty: str | None = None,
    questions: int | None = None,
    trials: int | None = None,
    only_shared: bool = False,
    system: list[str] | None = None,
    seed: int = 0,
    markdown: bool = False,
    as_json: bool = False,
    output: Path | None = None,
) -> None:
    """Decide whether a new system passes; exit code 0 pass, 1 fail, 3 inconclusive.

    Parameters
    ----------
    baseline
        File or folder of the baseline.
    metric : -m
        In place of --policy.
    margin
        With --metric: how much worse the new system may be.
    policy
        The rules, fixed in a TOML file.
    init
        Write a file of rules to fill in: --policy, or gate.toml.
    only_shared : --shared
        Use the questions that both systems tried.
    system
        First the new system, then the baseline: both of FILE, or of FILE and of --baseline;
        one name for both of these. Alone, FILE may be a saved result (.nc), whose model decides.
    seed
        Seed of the draws.
    markdown
        Print Markdown, for a pull request.
    output : -o
        Save as .json, or as .md to read.

    Before any data
    ---------------
    design
        How often verdicts change, and power.
    difficulty
        For --design: MEAN,ICC of the baseline.
    questions
        For --design: number of questions of a run.
    trials
        For --design: trials of each question.
    """
    if init:
        _write_policy(policy or Path("gate.toml"), metric or "pass@1", margin or 0.02)
        return
    if (policy is None) == (metric is None) or (metric is None) != (margin is None):
        raise ValueError(
            "give either --policy FILE or --metric and --margin, as in --metric pass@1 --margin "
            "0.02; --init writes a FILE."
        )
    for file in filter(None, (policy, baseline)):
        check_file(file)
    stated = [difficulty, questions, trials]
    _check_gate(reading, baseline, system or [], stated, design)
    check_output(output, reading.files, _GATE_ENDINGS)
    from bayesatk.comparison.gates.policy import GatePolicy, gate_design

    rules = GatePolicy(metric or "", margin or 0.0) if policy is None else GatePolicy.read(policy)
    if reading.group and not rules.floors:
        raise ValueError(
            f"--group is for floors of groups, in [floors] of a --policy; got {reading.group} "
            f"without a floor. Leave it out, or gate one group: --where {reading.group}=VALUE."
        )
    silent, code = reading.quiet or as_json, 0
    answer: Any
    if difficulty is None:
        answer = _gate(reading, rules, baseline, system, only_shared, seed, output, silent)
        code = answer.exit_code
    else:
        mean_icc = _mean_and_icc(difficulty)
        with working("Working out error rates ...", silent):
            answer = gate_design(rules, mean_icc, questions=questions, trials=trials)
    _give(answer, output, as_json, markdown)
    raise Exit(code)


def _gate(
    reading: Reading,
    rules: Any,
    baseline: Path | None,
    systems: list[str] | None,
    only_shared: bool,
    seed: int,
    output: Path | None,
    silent: bool,
) -> Any:
    """Return the verdict on runs of two systems, or on two of a saved result by its model."""
    from bayesatk.comparison.gates.gate import gate_of, gate_of_result
    from bayesatk.io.saved import load_result
    from bayesatk.results.result import Result
    from bayesatk.results.selection import systems_of

    file, *more = reading.files
    if baseline is not None or not systems or not file.endswith(RESULTS[:2]):
        outcomes = reading.load(output, read=_both(baseline, systems), endings=_GATE_ENDINGS)
        with working("Deciding ...", silent):
            return gate_of(outcomes, rules, shared=only_shared, rng=seed)
    check_file(Path(file))
    if only_shared or more:
        fault = "--shared" if only_shared else more[0]
        raise ValueError(f"a saved result must go alone, with the questions it has; got {fault}.")
    fit = Result.of(load_result(file))
    labels = {str(label): label for label in fit.systems}
    both = Result.of(systems_of(fit, [labels.get(name, name) for name in systems]))
    with working("Deciding ...", silent):
        return gate_of_result(both, labels[systems[1]], rules)


def _both(baseline: Path | None, systems: list[str] | None) -> Callable[..., Any]:
    """Return what reads the new system and the baseline: of a source each, or both of one."""

    def read_both(source: Any, **options: Any) -> Any:
        from bayesatk.comparison.gates.gate import joined_outcomes
        from bayesatk.io.load import load

        if baseline is None:
            data = load(source, **options)
            return joined_outcomes(*(outcomes_of_systems(data, [name]) for name in systems or []))
        if isinstance(source, dict):
            raise ValueError("files must go without NAME= here: they are of the new system.")
        both = [load(source, **options), load(str(baseline), **options)]
        if systems:
            named = zip(both, (systems[0], systems[-1]), strict=True)
            both = [outcomes_of_systems(data, [name]) for data, name in named]
        for data in both:
            if len(data.systems) > 1:
                raise ValueError(
                    f"a file has the systems {', '.join(map(str, data.systems))[:200]}. Name the "
                    "one of each file: --system NEW --system BASELINE, or once if they have one "
                    "name."
                )
        return joined_outcomes(*both)

    return read_both


def _give(answer: Any, output: Path | None, as_json: bool, markdown: bool) -> None:
    """Write and print a verdict, or a design."""
    if output is not None:
        as_text = output.suffix == ".md"
        text = answer.markdown() if as_text else json.dumps(answer.as_dict(), indent=2) + "\n"
        output.write_text(text, encoding="utf-8")
    if as_json:
        print_json(answer.as_dict())
    else:
        print(answer.markdown() if markdown else answer)


_RULES = """\
# Rules by which `bayesatk gate NEW --baseline OLD --policy FILE` decides; fix them before the data.
metric = {metric}
margin = {margin:g}  # how much worse the new system may be
rule = "non-inferiority"  # or "superiority": better by more than margin
ci_prob = 0.95  # posterior probability that a verdict needs
target = "questions"  # these questions; or "population": questions like these
# effect = -0.05  # a difference at which the power of the gate is reported
# [floors]  # smallest acceptable value of a question or group
# "q7" = 0.9
"""


def _write_policy(path: Path, metric: str, margin: float) -> None:
    """Write a file of rules, where there is none."""
    from bayesatk.comparison.gates.policy import GatePolicy

    rules = GatePolicy(metric, margin)  # refuses what is no rule
    if path.exists():
        raise ValueError(f"--policy must be a new file; {path} is there. Name another.")
    with path.open("w", encoding="utf-8") as file:
        file.write(_RULES.format(metric=json.dumps(rules.metric), margin=rules.margin))
    print(f"Saved {path}")


def _check_gate(
    reading: Reading, baseline: Path | None, system: list[str], stated: list[Any], design: bool
) -> None:
    """Refuse what does not go together, before anything is read."""
    of_file = reading.files or system
    for is_wrong, message in (
        (
            design and (of_file or baseline is not None or None in stated),
            "--design takes --difficulty MEAN,ICC, --questions and --trials, and no FILE.",
        ),
        (
            system and baseline is None and len(set(system)) != 2,
            "--system must name two systems of FILE, the new one and the baseline; "
            f"got {', '.join(system)}. Write --system NEW --system BASELINE.",
        ),
        (
            baseline is not None and len(system) > 2,
            "--system must name the system of FILE and that of --baseline; "
            f"got {', '.join(system)}. Write --system NEW --system BASELINE.",
        ),
        (
            not design and (not reading.files or (baseline is None and not system) or any(stated)),
            "give FILE of the new system and --baseline FILE, or FILE of both and --system NEW "
            "--system BASELINE; or --design, which alone takes --difficulty, --questions and "
            "--trials.",
        ),
    ):
        if is_wrong:
            raise ValueError(message)


def _stated_difficulty(texts: list[str]) -> list[float] | dict[str, list[float]]:
    """Return mean and intraclass correlation: of one system, or by the names of systems.

    Examples
    --------
    >>> _stated_difficulty(["0.6,0.3"]), _stated_difficulty(["a=0.6,0.3", "b=0.7,0.3"])
    ([0.6, 0.3], {'a': [0.6, 0.3], 'b': [0.7, 0.3]})
    """
    if len(texts) == 1 and "=" not in texts[0]:
        return _mean_and_icc(texts[0])
    return {name: _mean_and_icc(text) for name, text in pairs(texts, "--difficulty").items()}


def _mean_and_icc(text: str) -> list[float]:
    """Return mean and intraclass correlation.

    Examples
    --------
    >>> _mean_and_icc("0.6,0.3")
    [0.6, 0.3]
    """
    try:
        mean, icc = (float(number) for number in text.split(","))
        if 0.0 < mean < 1.0 and 0.0 < icc < 1.0:
            return [mean, icc]
    except ValueError:
        pass
    raise ValueError(
        f"--difficulty must be MEAN,ICC, both between 0 and 1; got {text!r}. Try 0.6,0.3."
    )

"""Write the Inspect logs of ``tests/logs/inspect`` with the real inspect-ai and its mock model.

The committed files were written by inspect-ai 0.3.285, ``deflate.eval`` by inspect-ai 0.3.205.
Run it from a folder outside any git checkout, in an environment that has only inspect-ai::

    python make_inspect.py OUT            # every log but deflate.eval (newest inspect-ai)
    python make_inspect.py OUT deflate    # deflate.eval (inspect-ai < 0.3.206)

Answers and outcomes are fixed; uuids, times and run ids differ from one run to the next. To stay
small, the logs that ``thin`` lists are read and written once more by inspect-ai without events.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import anyio
from inspect_ai import Epochs, Task, eval, eval_retry, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Target, accuracy, choice, match, mean, scorer, stderr
from inspect_ai.solver import Generate, TaskState, generate, multiple_choice, solver

QUESTIONS = {
    "add-small": ("What is 2 + 3?", "5"),
    "add-large": ("What is 417 + 586?", "1003"),
    "subtract": ("What is 90 - 34?", "56"),
    "multiply": ("What is 12 * 13?", "156"),
    "divide": ("What is 144 / 9?", "16"),
    "power": ("What is 2 ** 12?", "4096"),
}

# One row a question, one letter an epoch: c correct, w wrong, e empty, x raises.
ALPHA = ["cccc", "ccwc", "cccw", "wcwc", "wwwc", "wwww"]
BETA = ["cccw", "cwww", "cccc", "wwwc", "ccww", "wwcw"]
EMPTY = ["ccec", "eccw", "cecc", "wece", "eewc", "wewe"]
ERRORS = ["cccw", "xccc", "cwxc", "xxxx", "eewc", "cccc"]
RETRY_FLAG = "BAYESATK_LOGS_RETRY"


def samples(long_input: bool = False) -> list[Sample]:
    """Six questions with string ids."""
    lead = "Work it out step by step, then give the number alone. " * 120 if long_input else ""
    return [
        Sample(id=name, input=lead + question, target=target, metadata={"kind": name.split("-")[0]})
        for name, (question, target) in QUESTIONS.items()
    ]


def reply(text: str) -> ModelOutput:
    """Build a model output whose usage is set, so that no tokenizer is asked for."""
    output = ModelOutput.from_content(model="mockllm", content=text)
    output.usage = ModelUsage(input_tokens=8, output_tokens=len(text), total_tokens=8 + len(text))
    return output


def planned(table: list[str]) -> Callable[..., ModelOutput]:
    """Answer by the table; the solver below passes the epoch as the seed of the generation."""
    rows = dict(zip(QUESTIONS, table, strict=True))

    def answer(messages: list[Any], tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        text = messages[-1].text
        name = next(n for n, (question, _) in QUESTIONS.items() if text.endswith(question))
        mark = rows[name][(config.seed or 1) - 1]
        right = QUESTIONS[name][1]
        return reply({"c": f"ANSWER: {right}", "w": "ANSWER: 7"}.get(mark, ""))

    return answer


def mock(name: str, table: list[str]) -> Model:
    """Build the mock model ``mockllm/name``."""
    return get_model(f"mockllm/{name}", custom_outputs=planned(table), memoize=False)


@solver
def seeded(broken: list[str] | None = None) -> Any:
    """Generate with the epoch as the seed; raise where the table of the broken has an x."""
    rows = dict(zip(QUESTIONS, broken or [], strict=False))

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if rows and rows[str(state.sample_id)][state.epoch - 1] == "x":
            raise RuntimeError(f"mock failure on {state.sample_id} epoch {state.epoch}")
        return await generate(state, seed=state.epoch)

    return solve


@scorer(metrics=[mean(), stderr()])
def graded() -> Any:
    """Give C, P, I or N."""

    async def score(state: TaskState, target: Target) -> Score:
        text = state.output.completion
        value = "C" if text.endswith(target.text) else "N" if not text else "I"
        partial = value == "I" and state.epoch == 1
        return Score(value="P" if partial else value, answer=text.removeprefix("ANSWER: "))

    return score


@scorer(metrics=[mean(), stderr()])
def numeric() -> Any:
    """Give 1 for an answer whose last digit is right, else 0, and no answer field."""

    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=int(state.output.completion[-1:] == target.text[-1:]))

    return score


@scorer(metrics=[accuracy(), stderr()])
def partial_scorer() -> Any:
    """Leave some samples unscored: one by None, one by NaN."""

    async def score(state: TaskState, target: Target) -> Score | None:
        if not state.output.completion:
            if state.epoch == 1:
                return None
            return Score(value=float("nan"), answer="", explanation="no answer to grade")
        right = state.output.completion.endswith(target.text)
        return Score(value="C" if right else "I", answer=state.output.completion[8:])

    return score


@scorer(metrics={"a": [mean()], "b": [mean()]})
def aspects() -> Any:
    """Give a dictionary of two aspects."""

    async def score(state: TaskState, target: Target) -> Score:
        right = state.output.completion.endswith(target.text)
        return Score(value={"a": int(right), "b": int("ANSWER" not in state.output.completion)})

    return score


@task
def arithmetic(epochs: int = 4, long_input: bool = False) -> Task:
    """Ask the six questions, four epochs, one scorer that gives C or I."""
    return Task(
        dataset=MemoryDataset(samples(long_input), name="sums"),
        solver=seeded(),
        scorer=match(location="end"),
        epochs=epochs,
    )


@task
def two_scorers() -> Task:
    """Score with C, I, P, N and with numbers; reduce by mean and by pass at 2."""
    return Task(
        dataset=MemoryDataset(samples(), name="sums"),
        solver=seeded(),
        scorer=[graded(), numeric()],
        epochs=Epochs(4, ["mean", "pass_at_2"]),
    )


@task
def errors() -> Task:
    """Let samples fail and stay unscored."""
    return Task(
        dataset=MemoryDataset(samples(), name="sums"),
        solver=seeded(ERRORS),
        scorer=partial_scorer(),
        epochs=4,
        fail_on_error=False,
    )


@task
def dict_score() -> Task:
    """Score with a dictionary; the ids are left to inspect-ai, which counts from 1."""
    found = samples()[:4]
    for sample in found:
        sample.id = None
    return Task(
        dataset=MemoryDataset(found, name="sums"),
        solver=seeded(),
        scorer=aspects(),
        epochs=2,
    )


@solver
def flaky() -> Any:
    """Answer without a model call, and fail on one sample until the retry flag is set."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if (state.sample_id, state.epoch) == ("subtract", 2) and RETRY_FLAG not in os.environ:
            raise RuntimeError("mock outage")
        state.output = reply("ANSWER: 5" if state.epoch == 1 else "ANSWER: 56")
        return state

    return solve


@task
def retried() -> Task:
    """Fail in a way that a second try mends."""
    return Task(
        dataset=MemoryDataset(samples(), name="sums"),
        solver=flaky(),
        scorer=match(location="end"),
        epochs=2,
    )


CAPITALS = {
    "france": ("The capital of France?", ["Paris", "Lyon", "Nice", "Lille"]),
    "spain": ("The capital of Spain?", ["Madrid", "Seville", "Bilbao", "Malaga"]),
    "italy": ("The capital of Italy?", ["Rome", "Milan", "Turin", "Naples"]),
    "japan": ("The capital of Japan?", ["Tokyo", "Osaka", "Kyoto", "Nara"]),
}


def capitals() -> list[Sample]:
    """Four choice questions whose first choice is right."""
    return [
        Sample(id=name, input=question, choices=choices, target="A")
        for name, (question, choices) in CAPITALS.items()
    ]


@task
def choices_by_seed(seed: int = 1) -> Task:
    """Shuffle the choices of the dataset by a seed, so that targets differ between logs."""
    dataset = MemoryDataset(capitals(), name="capitals")
    dataset.shuffle_choices(seed=seed)
    return Task(dataset=dataset, solver=multiple_choice(), scorer=choice(), epochs=2)


@task
def choices_by_epoch() -> Task:
    """Shuffle the choices in the solver, anew in each epoch; the log hides it."""
    return Task(
        dataset=MemoryDataset(capitals(), name="capitals"),
        solver=multiple_choice(shuffle=Random(3)),
        scorer=choice(),
        epochs=4,
    )


@task
def limited() -> Task:
    """Stop every sample at a message limit."""
    return Task(
        dataset=MemoryDataset(samples()[:2], name="sums"),
        solver=[generate(), seeded()],
        scorer=match(location="end"),
        epochs=2,
        message_limit=2,
    )


@task
def doomed() -> Task:
    """Fail the whole evaluation at one sample."""
    return Task(
        dataset=MemoryDataset(samples(), name="sums"),
        solver=seeded(["cc", "cw", "cx", "cc", "cc", "cc"]),
        scorer=match(location="end"),
        epochs=2,
        fail_on_error=True,
    )


@solver
def stopping(how: str) -> Any:
    """Kill the process, or interrupt it, at the last sample."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if (state.sample_id, state.epoch) == ("power", 2):
            if how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGINT)
            await anyio.sleep(20)
        return await generate(state, seed=state.epoch)

    return solve


@task
def stopped(how: str) -> Task:
    """Stop in the middle, so that the log is incomplete."""
    return Task(
        dataset=MemoryDataset(samples(), name="sums"),
        solver=stopping(how),
        scorer=match(location="end"),
        epochs=2,
    )


def run(one: Task, model: Any, path: Path, **options: Any) -> Path:
    """Evaluate a task, one sample at a time, and move its log to the path."""
    with tempfile.TemporaryDirectory() as folder:
        options.setdefault("log_format", path.suffix[1:])
        eval(one, model=model, log_dir=folder, max_samples=1, display="none", **options)
        (log,) = Path(folder).glob(f"*{path.suffix}")
        shutil.move(log, path)
    return path


def thin(*paths: Path) -> None:
    """Write logs once more without events, by inspect-ai itself, to keep them small."""
    for path in paths:
        log = read_eval_log(str(path))
        for sample in log.samples or []:
            sample.events, sample.events_data, sample.attachments = [], None, {}
        path.unlink()
        write_eval_log(log, str(path))


def write_retried(out: Path) -> None:
    """Write a failed log, the log of a retry that fails once more, and of one that succeeds."""
    first = run(retried(), "mockllm/model", out / "retried_1.eval", fail_on_error=True)
    for name in ("retried_again.eval", "retried_2.eval"):
        with tempfile.TemporaryDirectory() as folder:
            eval_retry(str(first), log_dir=folder, display="none", max_samples=1)
            (log,) = Path(folder).glob("*.eval")
            shutil.move(log, out / name)
        os.environ[RETRY_FLAG] = "1"


def write_stopped(out: Path, how: str, name: str) -> None:
    """Write an incomplete log from a child process that stops in the middle."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, __file__, folder, how], check=False, capture_output=True)
        (log,) = Path(folder).glob("*.eval")
        shutil.move(log, out / name)


def first_choice(messages: list[Any], tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
    """Answer every choice question with A."""
    return reply("ANSWER: A")


def write_all(out: Path) -> None:
    """Write every log that the newest inspect-ai writes."""
    alpha, beta = mock("alpha", ALPHA), mock("beta", BETA)
    run(arithmetic(), alpha, out / "arithmetic_a.eval")
    both = read_eval_log(str(out / "arithmetic_a.eval"))
    write_eval_log(both, str(out / "arithmetic_a.json"))
    run(arithmetic(), beta, out / "arithmetic_b.eval")
    run(arithmetic(1, long_input=True), alpha, out / "long_input.eval")
    run(two_scorers(), mock("alpha", EMPTY), out / "two_scorers.eval")
    run(errors(), mock("alpha", ERRORS), out / "errors.eval")
    run(errors(), mock("alpha", ERRORS), out / "errors.json", limit=5, epochs=2)
    run(dict_score(), alpha, out / "dict_score.eval")
    run(arithmetic(), mock("empty", EMPTY), out / "empty.eval")
    run(limited(), alpha, out / "limited.eval")
    run(doomed(), alpha, out / "error_status.eval")
    picker = get_model("mockllm/picker", custom_outputs=first_choice, memoize=False)
    for seed in (1, 2):
        run(choices_by_seed(seed), picker, out / f"shuffled_seed_{seed}.eval")
    run(choices_by_epoch(), picker, out / "shuffled.eval")
    write_retried(out)
    write_stopped(out, "kill", "started.eval")
    write_stopped(out, "interrupt", "cancelled.eval")
    for name in ("arithmetic_a.json", "arithmetic_b.eval", "two_scorers.eval", "empty.eval"):
        thin(out / name)
    thin(out / "errors.eval", out / "errors.json", out / "shuffled.eval")


def main() -> None:
    """Write the logs named on the command line."""
    out, what = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "all"
    out.mkdir(parents=True, exist_ok=True)
    if what in ("kill", "interrupt"):
        eval(
            stopped(what),
            model=mock("alpha", ALPHA),
            log_dir=str(out),
            log_format="eval",
            log_buffer=1,
            max_samples=1,
            display="none",
        )
    elif what == "deflate":
        run(arithmetic(), mock("alpha", ALPHA), out / "deflate.eval")
    else:
        write_all(out)


if __name__ == "__main__":
    main()

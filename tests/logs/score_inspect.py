"""Evaluations by the real inspect-ai, with its mock model, whose metrics are bayesatk's.

Run by `test_inspect_metrics` in a process of its own, because of the event loop and warnings of
inspect-ai: ``python score_inspect.py LOG_FOLDER`` writes the logs of two runs of the same samples,
``base`` and ``new``, of which ``new`` is compared with ``base``, and scores ``new`` again.
"""

import sys
from pathlib import Path

import numpy as np
from inspect_ai import Epochs, Task, score
from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Metric, accuracy, match
from inspect_ai.solver import generate

import bayesatk.inspect as bai

QUESTIONS, EPOCHS = 12, 3
METRICS = "pass@1,2 pass^2 bayes"


def answer(right: bool) -> ModelOutput:
    """Answer right or wrong; with usage, so that nothing counts tokens."""
    output = ModelOutput.from_content("mockllm/model", "yes" if right else "no")
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


def run(folder: Path, lift: float, seed: int, *metrics: Metric) -> EvalLog:
    """Run all epochs, with answers drawn from success probabilities that runs share."""
    rng = np.random.default_rng(seed)
    p = np.clip(np.linspace(0.0, 0.9, QUESTIONS) + lift, 0.0, 1.0)
    answers = [answer(bool(rng.random() < p[i])) for _ in range(EPOCHS) for i in range(QUESTIONS)]
    samples = [
        Sample(id=i + 1, input="?", target="yes", metadata={"kind": "odd" if i % 2 else "even"})
        for i in range(QUESTIONS)
    ]
    task = Task(
        dataset=MemoryDataset(samples),
        solver=generate(),
        scorer=match(),
        metrics=[accuracy(), *metrics],
        epochs=Epochs(EPOCHS, ["mean", "at_least_1"]),
    )
    model = get_model("mockllm/model", custom_outputs=answers)
    (log,) = evaluate(task, model=model, log_dir=str(folder), display="none", max_samples=1)
    assert log.status == "success", log.error
    return log


def main(folder: Path) -> None:
    """Write the logs."""
    base = run(folder / "base", 0.0, 1, bai.evaluate(METRICS))
    metrics = [bai.evaluate(METRICS, group="kind"), bai.compare(base.location, "pass@1")]
    new = run(folder / "new", 0.2, 2, *metrics)
    again = score(read_eval_log(new.location), match(), display="none", action="overwrite")
    (folder / "again").mkdir()
    write_eval_log(again, str(folder / "again" / "again.eval"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

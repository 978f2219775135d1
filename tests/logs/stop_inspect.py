"""An evaluation by the real inspect-ai, with its mock model, that is stopped early.

Run by `test_inspect_stopping` in a process of its own, because of the event loop and warnings of
inspect-ai: ``python stop_inspect.py LOG_FOLDER`` prints what was logged, as JSON.
"""

import json
import sys

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate

import bayesatk as bk

QUESTIONS = 60


def answer() -> ModelOutput:
    """Answer every question right; with usage, so that nothing counts tokens."""
    output = ModelOutput.from_content("mockllm/model", "yes")
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


def main(folder: str) -> None:
    """Compare with a baseline that fails three quarters of its trials."""
    names = [f"q{i}" for i in range(QUESTIONS)]
    baseline = bk.tally([[i % 2, 0] for i in range(QUESTIONS)], questions=names)
    rule = bk.decide.StoppingRule("pass@1", kind="anytime", trials=1)
    task = Task(
        dataset=MemoryDataset([Sample(id=name, input="?", target="yes") for name in names]),
        solver=generate(), scorer=match(),
        early_stopping=bk.decide.InspectStopping(rule, baseline, rng=1),
    )  # fmt: skip
    model = get_model("mockllm/model", custom_outputs=[answer() for _ in names])
    (log,) = evaluate(task, model=model, log_dir=folder, display="none", max_samples=1)
    assert log.results is not None, log.error
    stopping = log.results.early_stopping
    assert stopping is not None
    logged = {"manager": stopping.manager, "stops": len(stopping.early_stops), **stopping.metadata}
    print(json.dumps({"status": log.status, "samples": len(log.samples or []), **logged}))


if __name__ == "__main__":
    main(sys.argv[1])

"""An evaluation by the real lm-eval of a task in YAML, whose metrics are bayesatk's.

Run by `test_lm_eval_metrics` in a process of its own: ``python score_lm_eval.py FOLDER`` writes the
task, evaluates it with a scripted model, saves the logs as the command line of lm-eval does, and
prints the results of the scripted and of lm-eval's dummy model as JSON. It needs no network.
"""

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"

import lm_eval.models  # noqa: F401 (registers the dummy model)
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model
from lm_eval.evaluator import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

# One row a document, one letter a repeat: c right, w wrong.
PLAN = ["ccccc", "cwccw", "wwwcw", "wwwww", "cccwc", "cwwwc", "ccwcc", "wwwwc"]
TASK = """
task: sums
dataset_path: json
dataset_kwargs:
  data_files: {test: sums.jsonl}
test_split: test
output_type: generate_until
doc_to_text: "What is {{sum}}?"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["\\n"], do_sample: true, temperature: 1.0}
repeats: 5
filter_list:
  - name: repeats
    filter: [{function: take_first_k, k: 5}]
metric_list:
  - metric: !function bayesatk.lm_eval.pass_at_k
    aggregation: !function bayesatk.lm_eval.aggregate
    higher_is_better: true
    k: [1, 4]
  - metric: !function bayesatk.lm_eval.pass_hat_k
    aggregation: !function bayesatk.lm_eval.aggregate
    higher_is_better: true
    k: 4
    correct: !function judge.same
"""
JUDGE = "def same(reference, response):\n    return reference == response.strip()\n"


@register_model("scripted")
class Scripted(LM):
    """Answer by the plan."""

    def __init__(self, pretrained: str, **_: Any) -> None:
        super().__init__()

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        """Answer each request; the n-th request of one document takes the n-th letter."""
        repeat: Counter[int] = Counter()
        answers = []
        for request in requests:
            mark = PLAN[request.doc_id][repeat[request.doc_id]]
            repeat[request.doc_id] += 1
            answers.append(str(2 * request.doc_id) if mark == "c" else "no")
        return answers

    def loglikelihood(self, requests: Any, disable_tqdm: bool = False) -> Any:
        """Refuse: no task here asks for it."""
        raise NotImplementedError

    loglikelihood_rolling = loglikelihood


def main(folder: Path) -> None:
    """Evaluate the task with both models."""
    os.environ["HF_HOME"] = str(folder / "cache")
    (folder / "task").mkdir()
    os.chdir(folder)
    documents = [json.dumps({"sum": f"{i} + {i}", "answer": str(2 * i)}) for i in range(len(PLAN))]
    Path("sums.jsonl").write_text("\n".join(documents) + "\n")
    Path("task", "sums.yaml").write_text(TASK)
    Path("task", "judge.py").write_text(JUDGE)
    manager = TaskManager(include_path="task", include_defaults=False)
    answers = {}
    for model in ("scripted", "dummy"):
        tracker = EvaluationTracker(output_path=str(folder / "logs"))
        results = simple_evaluate(
            model=model,
            model_args={"pretrained": model},
            tasks=["sums"],
            task_manager=manager,
            log_samples=True,
            evaluation_tracker=tracker,
        )
        assert results is not None
        samples = results.pop("samples")
        if model == "scripted":
            tracker.save_results_aggregated(results=results, samples=samples)
            tracker.save_results_samples(task_name="sums", samples=samples["sums"])
        answers[model] = {
            **results["results"]["sums"],
            "higher": results["higher_is_better"]["sums"],
        }
    print(json.dumps(answers))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Write the lm-eval logs of ``tests/logs/lm_eval`` with the real harness and a scripted model.

The committed files were written by lm-eval 0.4.13 with datasets 5.2.0, without torch. Run it from
a folder outside any git checkout, in an environment that has only lm-eval; it needs no network::

    python make_lm_eval.py OUT

Answers and outcomes are fixed by model, seed, task and document; timestamps and run times differ.
"""

import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"

from lm_eval.api.model import LM
from lm_eval.api.registry import register_model
from lm_eval.evaluator import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.utils import handle_non_serializable

DOCS = [
    ("2 + 3", "5", ["4", "5", "6"], 1),
    ("417 + 586", "1003", ["1003", "993", "1013"], 0),
    ("90 - 34", "56", ["66", "46", "56"], 2),
    ("12 * 13", "156", ["156", "146", "166"], 0),
    ("144 / 9", "16", ["14", "16", "18"], 1),
]

# One row a document, one letter a repeat: c correct, w wrong, l correct but in a sentence, e empty.
PLANS = {
    ("example/alpha", 1): ["ccc", "cwc", "lcc", "wwc", "eww"],
    ("example/alpha", 2): ["ccw", "wcc", "ccc", "lww", "www"],
    ("example/beta", 1): ["ccc", "www", "wcc", "lcw", "cww"],
    ("example/beta", 2): ["lcc", "ewc", "wwc", "ccc", "cwc"],
}


@register_model("scripted")
class Scripted(LM):
    """Answer by the plan of the model and the seed."""

    def __init__(self, pretrained: str, seed: int = 1, **_: Any) -> None:
        super().__init__()
        self.plan = PLANS[pretrained, int(seed)]

    def text(self, context: str, repeat: int) -> str:
        """Answer the document of the context."""
        row = next(i for i, doc in enumerate(DOCS) if f"What is {doc[0]}?" in context)
        mark, right = self.plan[row][repeat % 3], DOCS[row][1]
        if mark == "e":
            return ""
        return f"That makes {right}." if mark == "l" else f"#### {right if mark == 'c' else 7}"

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        """Answer each request; the n-th request of one document takes the n-th letter."""
        seen: Counter[tuple[str, int]] = Counter()
        answers = []
        for request in requests:
            key = (request.task_name, request.doc_id)
            answers.append(self.text(request.args[0], seen[key]))
            seen[key] += 1
        return answers

    def loglikelihood(
        self, requests: list[Any], disable_tqdm: bool = False
    ) -> list[tuple[float, bool]]:
        """Prefer the right choice where the plan is correct, else another."""
        found = []
        for request in requests:
            context, choice = request.args
            row = next(i for i, doc in enumerate(DOCS) if f"What is {doc[0]}?" in context)
            right = choice.strip() == DOCS[row][1]
            high = right == (self.plan[row][0] in "cl")
            found.append((-0.5 - 0.125 * (len(choice) % 2) if high else -2.25, high))
        return found

    def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[float]:
        """Refuse: no task here asks for it."""
        raise NotImplementedError


BASE: dict[str, Any] = {
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": "sums.jsonl"}},
    "test_split": "test",
    "doc_to_text": "Question: What is {{sum}}?\nAnswer:",
    "num_fewshot": 0,
    "metadata": {"version": 1.0},
}

STRICT = [{"function": "regex", "regex_pattern": "#### (\\-?[0-9]+)"}, {"function": "take_first"}]
LOOSE = [
    {"function": "regex", "regex_pattern": "(\\-?[0-9]+)", "group_select": -1},
    {"function": "take_first"},
]
EXACT = [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}]
GENERATED: dict[str, Any] = {
    "output_type": "generate_until",
    "doc_to_target": "{{answer}}",
    "metric_list": EXACT,
    "generation_kwargs": {"until": ["\n\n"], "do_sample": True, "temperature": 1.0},
}

TASKS: list[dict[str, Any]] = [
    BASE
    | GENERATED
    | {
        "task": "sums_gen",
        "filter_list": [{"name": "strict-match", "filter": STRICT}],
    },
    BASE
    | GENERATED
    | {
        "task": "sums_filters",
        "filter_list": [
            {"name": "strict-match", "filter": STRICT},
            {"name": "flexible-extract", "filter": LOOSE},
        ],
    },
    BASE | GENERATED | {"task": "sums_repeats", "repeats": 3, "doc_to_target": "#### {{answer}}"},
    BASE
    | {
        "task": "sums_choice",
        "output_type": "multiple_choice",
        "doc_to_target": "label",
        "doc_to_choice": "choices",
        "metric_list": [
            {"metric": "acc", "aggregation": "mean", "higher_is_better": True},
            {"metric": "acc_norm", "aggregation": "mean", "higher_is_better": True},
        ],
    },
]


def write_documents() -> None:
    """Write the documents beside the run."""
    rows = [
        json.dumps({"id": f"sum-{i}", "sum": s, "answer": a, "choices": c, "label": n})
        for i, (s, a, c, n) in enumerate(DOCS)
    ]
    Path("sums.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")


def run(out: Path, name: str, seed: int, tasks: list[dict[str, Any]]) -> None:
    """Evaluate one model with one seed and save as the command line of lm-eval does."""
    tracker = EvaluationTracker(output_path=str(out))
    results = simple_evaluate(
        model="scripted",
        model_args={"pretrained": name, "seed": seed},
        tasks=tasks,
        log_samples=True,
        evaluation_tracker=tracker,
        random_seed=seed,
        bootstrap_iters=0,
    )
    assert results is not None
    samples = results.pop("samples")
    json.dumps(results, default=handle_non_serializable)
    tracker.save_results_aggregated(results=results, samples=samples)
    for task_name in results["configs"]:
        tracker.save_results_samples(task_name=task_name, samples=samples[task_name])


def main() -> None:
    """Write the logs of two models with two seeds each."""
    out = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HF_HOME"] = str(Path(folder, "cache"))
        os.chdir(folder)
        write_documents()
        for name, seed in PLANS:
            tasks = TASKS if (name, seed) == ("example/alpha", 1) else TASKS[:1]
            run(out, name, seed, [dict(task) for task in tasks])
        os.chdir("/")


if __name__ == "__main__":
    main()

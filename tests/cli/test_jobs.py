"""``bayesatk compare jobs/a jobs/b``: what Harbor's jobs say about two agents, in one table."""

import re
from pathlib import Path

import numpy as np
import pytest

import bayesatk as bk
from tests.cli.shell import run
from tests.io.logs import harbor_trial

TASKS, TRIALS = 20, 4


@pytest.mark.long
def test_paired_difference_of_both_targets_in_one_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    p = rng.beta(0.8, 0.6, TASKS)
    for job, model, lift in (("a", "alpha", 0.0), ("b", "beta", 0.2)):
        marks = rng.random((TASKS, TRIALS)) < np.minimum(p + lift, 1.0)[:, None]
        for (task, trial), mark in np.ndenumerate(marks):
            name = f"task-{task}__{trial}{model}"
            harbor_trial(tmp_path / job, name, f"task-{task}", model, int(mark))
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

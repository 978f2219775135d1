"""The worked diff of the contributing page: a difficulty family, applied to a copy and used."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
USE = """
import numpy as np
from scipy.special import comb, logsumexp
from scipy.stats import betabinom

import bayesatk as bk

counts = np.array([0, 0, 1, 4, 5, 5, 6, 6]), np.full(8, 6)
fit = bk.evaluate(bk.tally(counts), "pass@4", difficulty="alike", rng=1)
rng = np.random.default_rng(2)
low, high = np.sort(rng.random((2, 40_000)), axis=0)
icc, share = rng.random((2, 40_000))
total = (1 - icc) / icc
logs = 0.0
for c, n in zip(*counts):
    pair = [betabinom.pmf(c, n, m * total, (1 - m) * total) for m in (low, high)]
    logs = logs + np.log(share * pair[0] + (1 - share) * pair[1]) - np.log(comb(n, c))
found = fit["closed_form"]["log_evidence"].item()
assert abs(found - (logsumexp(logs) - np.log(40_000))) < 0.05, found
every = bk.evaluate(bk.tally(counts), "pass@4", difficulty="averaged", rng=1)
print(every["closed_form"]["family"].values.tolist(), bk.exact_loo(every).elpd < 0)
print(bk.criticise(fit, rng=1)["sentence"].iloc[-1])
"""


def test_the_worked_diff_adds_a_family(tmp_path: Path) -> None:
    """Its lines are in the source as it is, and its evidence is that of draws from its prior."""
    shutil.copytree(ROOT / "src", tmp_path / "src")
    text = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    (diff,) = re.findall(r"```diff\n(.*?)```", text, flags=re.DOTALL)
    sections = re.split(r"^--- a/(.+)\n\+\+\+ b/.+\n", diff, flags=re.MULTILINE)[1:]
    assert len(sections) == 6
    for name, lines in zip(sections[::2], sections[1::2], strict=True):
        changes = {
            sign: "".join(one[1:] for one in lines.splitlines(True) if one[0] == sign)
            for sign in "-+"
        }
        source = (tmp_path / name).read_text(encoding="utf-8")
        assert source.count(changes["-"]) == 1, name
        (tmp_path / name).write_text(source.replace(changes["-"], changes["+"]), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run(
        [sys.executable, "-c", USE], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "['beta', 'inflated', 'mixture', 'alike'] True" in done.stdout
    assert "two Betas of one spread" in done.stdout

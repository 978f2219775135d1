"""The pytest plugin: what a gate does to its test, and that it costs nothing until it is used."""

import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from bayesatk.core.runs.repeated_test import RepeatedTest

pytest_plugins = "pytester"
ROOT = Path(__file__).parents[2]
TEST = """
import numpy as np

rng = np.random.default_rng(1)
p = rng.beta(0.8, 0.6, 60)
main = rng.binomial(1, p[:, None], (60, 4))
runs = {
    "same": rng.binomial(1, p[:, None], (60, 4)),
    "worse": rng.binomial(1, p[:, None] ** 4, (60, 4)),
}

def test_passes(bayesatk_gate):
    found = bayesatk_gate(runs["same"], main, metric="pass@1", margin=0.2)
    assert found["gate"].attrs["verdict"] == "pass"

def test_fails(bayesatk_gate):
    bayesatk_gate(runs["worse"], main, metric="pass@1", margin=0.02)

def test_open(bayesatk_gate):
    bayesatk_gate(main, main, metric="pass@1", margin=0.001)

def test_of_files(bayesatk_gate, tmp_path):
    (tmp_path / "gate.toml").write_text('metric = "pass@1"\\nmargin = 0.2\\n')
    for name, own in (("new", runs["same"]), ("main", main)):
        rows = [f"q{q},{t},{x}" for q, row in enumerate(own) for t, x in enumerate(row)]
        (tmp_path / f"{name}.csv").write_text("question,trial,outcome\\n" + "\\n".join(rows))
    bayesatk_gate(tmp_path / "new.csv", tmp_path / "main.csv", tmp_path / "gate.toml")
"""


def _pytest(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-q",
            "-rs",
            *arguments,
            str(folder),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    return done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.slow
def test_a_gate_decides_its_test(tmp_path) -> None:
    (tmp_path / "test_gates.py").write_text(TEST)
    shown = _pytest(tmp_path, "--junitxml=found.xml")
    assert "2 failed, 2 passed" in shown
    for text in ("test_fails: FAIL: in pass@1", "test_open: INCONCLUSIVE", "test_passes: PASS"):
        assert text in shown
    assert 'name="bayesatk_gate_verdict" value="fail"' in (tmp_path / "found.xml").read_text()
    skipped = _pytest(tmp_path, "-o", "bayesatk_inconclusive=skip", "-k", "open")
    assert "1 skipped" in skipped
    wrong = _pytest(tmp_path, "-o", "bayesatk_inconclusive=maybe", "-k", "open")
    assert "must be one of fail, skip, pass; got 'maybe'" in wrong


def test_the_plugin_is_installed_and_imports_nothing_of_the_library() -> None:
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    module = entry["pytest11"]["bayesatk"]
    code = (
        f"import pytest, sys; before = set(sys.modules); import {module}; "
        "print(sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['bayesatk']"


REPEATED = """
import random

import pytest

made, coin = [], random.Random(3)

@pytest.fixture(scope="module")
def model():
    made.append("model")
    yield
    made.append("model closed")

@pytest.fixture
def agent(model, tmp_path):
    made.append("agent")
    yield tmp_path
    made.append("agent closed")

@pytest.mark.trials(20, at_least=0.9)
def test_good(agent):
    assert not list(agent.iterdir())
    (agent / "state").touch()

def test_fixtures():
    assert made.count("agent") == made.count("agent closed") == 14
    assert made.count("model") == 1 and "model closed" not in made

@pytest.mark.trials(20, at_least=0.9)
def test_bad(agent):
    assert coin.random() < 0.2, "unlucky"

@pytest.mark.trials(50, at_least=0.9, undecided="fail")
def test_proved():
    pass

@pytest.mark.trials(20, at_least=0.5, undecided="skip", raises=KeyError)
@pytest.mark.parametrize("p", [0.0, 0.55])
def test_counted(p):
    if coin.random() >= p:
        raise KeyError("no answer")

@pytest.mark.trials(20, at_least=0.9)
def test_broken():
    if made.append("broken") or made.count("broken") == 4:
        raise RuntimeError("no connection")

@pytest.mark.trials(20, at_least=0.9)
def test_skipped():
    pytest.skip("no key")

@pytest.fixture
def leaky():
    yield
    raise OSError("not closed")

@pytest.mark.trials(20, at_least=0.9)
def test_leaky(leaky):
    pass

@pytest.mark.trials(20, at_least=0.9)
def test_without(nothing):
    pass
"""
LINES = {
    "test_good": "PASS: 14 of 14 trials passed: neither below nor above 0.9 is shown",
    "test_bad": "FAIL: 0 of 2 trials passed: success probability below 0.9",
    "test_proved": "PASS: 43 of 43 trials passed: success probability above 0.9",
    "test_counted[0.0]": "FAIL: 0 of 7 trials passed: success probability below 0.5",
    "test_counted[0.55]": "SKIP: ",
}


@pytest.mark.long
@pytest.mark.parametrize("options", [[], ["-n", "2", "--dist", "loadfile"]])
def test_a_marked_test_is_repeated_until_its_trials_decide(tmp_path, options) -> None:
    (tmp_path / "test_repeated.py").write_text(REPEATED)
    shown = _pytest(tmp_path, "--junitxml=found.xml", "-p", "no:randomly", *options)
    assert "3 failed, 4 passed, 2 skipped, 2 errors" in shown, shown
    *_, summary = shown.partition(" repeated tests ")
    for name, line in LINES.items():
        assert summary.count(f"test_repeated.py::{name}: {line}") == 1, shown
    for text in (
        "E       AssertionError: unlucky",
        "RuntimeError: no connection",
        "in trial 4; 3 of the 3 before it passed",
        "OSError: not closed",
        "fixture 'nothing' not found",
        "no key",
    ):
        assert text in shown
    xml = (tmp_path / "found.xml").read_text()
    assert xml.count('name="bayesatk_trials"') == len(LINES)


@pytest.mark.parametrize(
    ("marker", "says"),
    [
        ("20, at_least=0.9, undecided='fail'", "at least 43 for a test to pass with undecided='f"),
        ("2, at_least=0.5", "at least 7 for a test to fail with undecided='pass'"),
        ("20, at_least=1.0", "at_least must lie strictly between 0 and 1; got 1.0"),
        ("20, at_least=0.9, undecided='no'", "undecided must be 'fail', 'skip' or 'pass'"),
        ("0, at_least=0.9", "most must be"),
        ("20", "missing 1 required keyword-only argument: 'at_least'"),
    ],
)
def test_a_wrong_marker_is_refused_before_any_test_runs(pytester, marker, says) -> None:
    pytester.makepyfile(
        f"import pytest\n@pytest.mark.trials({marker})\ndef test_it(): pass\ndef test_other(): pass"
    )
    done = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert says in done.stderr.str()


def _rates(test: RepeatedTest, p: float) -> dict[str, float]:
    """Probabilities of the verdicts of independent trials, by enumeration of the counts."""
    going = {(0, 0): 1.0}
    verdicts = dict.fromkeys(("below", "above", "undecided"), 0.0)
    for _ in range(test.most):
        following: dict[tuple[int, int], float] = {}
        for (passed, failed), weight in going.items():
            for counts, chance in (((passed + 1, failed), p), ((passed, failed + 1), 1 - p)):
                following[counts] = following.get(counts, 0.0) + weight * chance
        going = {}
        for counts, weight in following.items():
            if test.ended(*counts):
                verdicts[test.verdict(*counts)] += weight
            else:
                going[counts] = weight
    assert not going
    return verdicts


def test_the_false_fail_rate_of_repeated_tests() -> None:
    test = RepeatedTest(20, at_least=0.9)
    at_floor = _rates(test, 0.9)
    assert sum(at_floor.values()) == pytest.approx(1.0)
    assert 0.01 < at_floor["below"] < 0.05  # 0.0217
    assert _rates(test, 0.5)["below"] > 0.95
    assert _rates(RepeatedTest(20, at_least=0.5), 0.5)["below"] < 0.05
    # Trials that depend on one another, never below the floor given those before.
    rng, below = np.random.default_rng(2), 0
    for _ in range(400):
        passed = failed = 0
        while not test.ended(passed, failed):
            p = 0.9 if failed else 0.99  # once it has failed it stays at the floor
            right = rng.random() < p
            passed, failed = passed + right, failed + (not right)
        below += test.verdict(passed, failed) == "below"
    assert below <= 34  # P(more) < 0.001 at 5%


def test_ending_early_changes_no_outcome() -> None:
    """Whatever follows, the verdict at the end has the same outcome."""
    test = RepeatedTest(12, at_least=0.6)
    for passed, failed in np.ndindex(12, 12):
        if passed + failed >= 12 or not test.ended(passed, failed):
            continue
        outcome = test.outcome(test.verdict(passed, failed))
        if test.verdict(passed, failed) == "undecided":
            left = 12 - passed - failed
            ways = [
                (passed + i, failed + j) for i, j in np.ndindex(left + 1, left + 1) if i + j <= left
            ]
            assert {test.outcome(test.verdict(*counts)) for counts in ways} == {outcome}

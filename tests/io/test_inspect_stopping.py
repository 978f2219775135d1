"""Early stopping of Inspect: the protocol by hand, and the real inspect-ai with its mock model."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import bayesatk as bk


def sample(name: object) -> SimpleNamespace:
    return SimpleNamespace(id=name)


def marked(value: object) -> dict[str, SimpleNamespace]:
    return {"match": SimpleNamespace(score=SimpleNamespace(value=value))}


def run(stopping: bk.decide.InspectStopping, marks: np.ndarray, order=None) -> int:
    """Complete samples (question, epoch), epoch by epoch or in an order; return how many ran."""

    async def go() -> int:
        await stopping.start_task(None, [sample(q) for q in range(len(marks))], marks.shape[1])
        ran = 0
        for epoch, question in order or [(e, q) for e, q in np.ndindex(marks.T.shape)]:
            if stopping.decision is None:
                ran += 1
                mark = "C" if marks[question, epoch] else "I"
                await stopping.complete_sample(question, epoch + 1, marked(mark))
        return ran

    return asyncio.run(go())


def test_it_stops_where_the_rule_does() -> None:
    rule = bk.decide.StoppingRule("pass@1", kind="anytime", trials=1, threshold=0.5)
    stopping = bk.decide.InspectStopping(rule)
    ran = run(stopping, np.ones((60, 1)))
    assert stopping.decision == "this evaluation is above 0.5"
    needed = [n for n in range(1, 60) if rule.decide(np.ones((n, 1)))["stop"].item()]
    assert ran == needed[0]
    said = asyncio.run(stopping.complete_task())
    assert (said["samples_counted"], said["alpha"]) == (ran, 0.05)


def test_samples_count_in_their_turn() -> None:
    rule = bk.decide.StoppingRule("pass@1", kind="anytime", trials=1, threshold=0.5)
    stopping = bk.decide.InspectStopping(rule)
    marks = np.ones((60, 1))
    ran = run(stopping, marks, order=[(0, q) for q in (*range(1, 60), 0)])
    assert ran == 60  # the first sample was the last to end


def test_epochs_are_splits_of_their_own() -> None:
    """The decision is that of e_value with a look after every epoch."""
    rng = np.random.default_rng(1)
    new, old = rng.binomial(1, 0.9, (40, 2)), rng.binomial(1, 0.35, (40, 4))
    baseline = bk.tally(old, questions=[str(q) for q in range(40)])
    rule = bk.decide.StoppingRule(kind="anytime", trials=2, alpha=1e-30)
    stopping = bk.decide.InspectStopping(rule, baseline, rng=3)
    assert run(stopping, new) == 80
    looks = [stopping._look(np.full(40, epoch)) for epoch in (1, 2)]
    assert looks[1].successes.values.sum(axis=1).tolist() == [new.sum(), old.sum()]
    assert looks[0].trials.values.tolist() == [[1] * 40, [2] * 40]
    certain = bk.decide.StoppingRule(kind="anytime", trials=2)
    stopping = bk.decide.InspectStopping(certain, baseline, rng=3)
    assert run(stopping, new) < 80
    assert stopping.decision == "this evaluation is ahead"


@pytest.mark.long
def test_equal_systems_are_seldom_called_different() -> None:
    rng, stopped = np.random.default_rng(5), 0
    for seed in range(12):
        p = rng.beta(1, 1, (15, 1))
        baseline = bk.tally(rng.binomial(1, p, (15, 2)), questions=list(range(15)))
        rule = bk.decide.StoppingRule(kind="anytime", trials=2, alpha=0.1)
        stopping = bk.decide.InspectStopping(rule, baseline, rng=seed)
        run(stopping, rng.binomial(1, p, (15, 2)))
        stopped += stopping.decision is not None
    assert stopped <= 5  # P(more) < 0.001 at 10%


def test_what_cannot_stop_is_refused() -> None:
    posterior = bk.decide.StoppingRule("pass@1")
    with pytest.raises(ValueError, match="rule must be a StoppingRule of kind 'anytime'"):
        bk.decide.InspectStopping(posterior)
    plain = bk.decide.StoppingRule(kind="anytime", trials=1)
    with pytest.raises(ValueError, match="baseline must be given for a rule without a threshold"):
        bk.decide.InspectStopping(plain)
    with pytest.raises(ValueError, match="baseline must have one system"):
        bk.decide.InspectStopping(plain, {"a": [[1]], "b": [[1]]})
    stopping = bk.decide.InspectStopping(plain, [[1], [0]])
    with pytest.raises(ValueError, match="as many trials as the task has epochs; got 1 and 2"):
        asyncio.run(stopping.start_task(None, [sample(0)], 2))
    with pytest.raises(ValueError, match="baseline must have every sample; it lacks"):
        asyncio.run(stopping.start_task(None, [sample(5)], 1))
    asyncio.run(stopping.start_task(None, [sample(0)], 1))
    with pytest.raises(ValueError, match="scores must have a score for every mark; got 'P'"):
        asyncio.run(stopping.complete_sample(0, 1, marked("P")))
    with pytest.raises(ValueError, match="scorer must be named where there are 2"):
        asyncio.run(stopping.complete_sample(0, 1, {**marked("C"), "other": marked("C")["match"]}))


@pytest.mark.long
@pytest.mark.slow
def test_the_real_inspect_stops_and_logs_why(tmp_path: Path) -> None:
    """An evaluation of 60 samples with inspect-ai's own mock model; a baseline that fails most."""
    script = Path(__file__).parents[1] / "logs" / "stop_inspect.py"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["status"], said["manager"]) == ("success", "bayesatk")
    assert said["decision"] == "this evaluation is ahead"
    assert 3 < said["samples_counted"] == said["samples"] < 30
    assert said["stops"] == 60 - said["samples"]
    assert bk.load(tmp_path).trials.sum().item() == said["samples"]

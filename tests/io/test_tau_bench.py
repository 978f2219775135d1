"""Traps in results of tau-bench and tau2-bench."""

import pytest

import bayesatk as bk
from tests.io.logs import (
    QUIET,
    counts,
    only,
    refused,
    said_or_refused,
    tau_run,
    totals,
    written_json,
)

pytestmark = QUIET


def simulation(task, trial, reward, ended="user_stop"):
    judged = None if reward is None else {"reward": reward, "reward_basis": ["DB"]}
    return {
        "id": f"{task}-{trial}",
        "task_id": task,
        "trial": trial,
        "reward_info": judged,
        "termination_reason": ended,
        "messages": [{"role": "user"}],
    }


def tau2(simulations, model="gpt-x", domain="airline"):
    info = {
        "git_commit": "0",
        "num_trials": 2,
        "agent_info": {"implementation": "a", "llm": model},
        "environment_info": {"domain_name": domain},
    }
    return {"timestamp": "t", "info": info, "tasks": [{"id": "0"}], "simulations": simulations}


TAU_NAME = "tool-calling-gpt-4o-0.0_range_0--1_user-gpt-4o-llm_0101.json"


def test_tau_bench(tmp_path):
    runs = [tau_run(task, trial, float(task == trial)) for task in (0, 1, 2) for trial in (0, 1)]
    runs[0]["reward"] = 1.0 - 1e-9  # a success, by the rule of the benchmark
    path = written_json(tmp_path / TAU_NAME, runs)
    data = bk.load(path)
    assert counts(data) == {path.stem: {0: (1, 1, 0), 1: (1, 1, 0), 2: (2, 0, 0)}}
    assert "named by its file" in data.card()
    assert set(counts(bk.load({"gpt": path}))) == {"gpt"}
    assert totals(bk.load(path, format="tau-bench")) == [4, 2, 0]


def test_exceptions_of_tau_bench_are_told(tmp_path):
    failed = tau_run(1, 0, 0.0) | {"info": {"error": "timeout", "traceback": ""}, "traj": []}
    path = written_json(tmp_path / TAU_NAME, [tau_run(0, 0, 1.0), failed])
    with pytest.warns(bk.OutcomeWarning, match="1 of 2"):
        assert totals(bk.load(path)) == [1, 1, 0]
    assert totals(bk.load(path, empty_output="missing", missing="ignore")) == [0, 1, 1]


@pytest.mark.parametrize("reward", [0.5, 0.999, -1.0, 2, "1", "C", [1]])
def test_rewards_that_are_no_success_or_failure(tmp_path, reward):
    path = written_json(tmp_path / "runs.json", [tau_run(0, 0, 1.0), tau_run(1, 0, reward)])
    refused(
        lambda: bk.load(path),
        r"^runs\.json",
        "question 1",
        "scores=|score every|Write every outcome",
    )
    if reward == 0.5:
        data = bk.load(path, scores={0: 0, 0.5: 0.5, 1: 1})
        assert totals(data) == [0, 1, 1, 0]


def test_rewards_that_are_missing(tmp_path):
    path = written_json(tmp_path / "runs.json", [tau_run(0, 0, 1.0), tau_run(1, 0, None)])
    refused(lambda: bk.load(path), "1 no reward", "question 1")
    assert totals(bk.load(path, missing="ignore")) == [0, 1, 1]
    run = tau_run(1, 0, 0.0)
    del run["reward"]
    path = written_json(path, [tau_run(0, 0, 1.0), run])
    refused(lambda: bk.load(path), "record 1", "'reward'")


def test_runs_of_tau_bench_without_numbers(tmp_path):
    runs = [tau_run(0, 0, 1.0), tau_run(0, 0, 0.0)]
    refused(lambda: bk.load(written_json(tmp_path / "r.json", runs)), "occurs twice", "question 0")
    for run in runs:
        del run["trial"]
    data = bk.load(written_json(tmp_path / "r.json", runs))
    assert only(data) == {0: (1, 1, 0)}
    assert "counted in the order of the file" in data.card()
    runs[0]["trial"], runs[1]["trial"] = [], {}
    refused(lambda: bk.load(written_json(tmp_path / "r.json", runs)), r"^r\.json")


def test_two_domains_of_tau_bench_are_not_compared(tmp_path):
    """Tasks are numbered from 0 in every domain; only the instruction tells them apart."""
    retail = written_json(tmp_path / "retail.json", [tau_run(0, 0, 1.0, "exchange the shoes")])
    airline = written_json(tmp_path / "airline.json", [tau_run(0, 0, 0.0, "cancel the flight")])
    said_or_refused(lambda: bk.load([retail, airline]), "CHECK")
    said_or_refused(lambda: bk.load({"x": [retail, airline]}, same_system="trials"), "CHECK")


def test_tau2(tmp_path):
    runs = [
        simulation("0", 0, 1.0),
        simulation("0", 1, 0.0),
        simulation("1", 0, 1.0, "agent_stop"),
        simulation("1", 1, 0.0, "max_steps"),
    ]
    path = written_json(tmp_path / "run.json", tau2(runs))
    data = bk.load(path)
    assert counts(data) == {"gpt-x": {"0": (1, 1, 0), "1": (1, 1, 0)}}
    assert "task: airline" in data.card()
    second = written_json(
        tmp_path / "b.json", tau2([run | {"id": "b" + run["id"]} for run in runs], "gpt-y")
    )
    assert bk.load([path, second]).systems == ["gpt-x", "gpt-y"]
    retail = written_json(
        tmp_path / "c.json", tau2([run | {"id": "c" + run["id"]} for run in runs], domain="retail")
    )
    assert set(only(bk.load([path, retail]))) == {
        "airline/0",
        "airline/1",
        "retail/0",
        "retail/1",
    }


def test_tau2_without_trial_numbers_and_without_a_wrapper(tmp_path):
    runs = [simulation(str(n // 2), None, float(n % 2)) | {"id": f"s{n}"} for n in range(4)]
    path = written_json(tmp_path / "run.json", tau2(runs, model="m"))
    data = bk.load(path)
    assert counts(data) == {"m": {"0": (1, 1, 0), "1": (1, 1, 0)}}
    assert "counted in the order of the file" in data.card()
    assert counts(bk.load(written_json(path, runs))) == {"run": {"0": (1, 1, 0), "1": (1, 1, 0)}}


def test_simulations_of_tau2_that_say_nothing(tmp_path):
    runs = [
        simulation("0", 0, 1.0),
        simulation("0", 1, 0.0, "infrastructure_error"),
        simulation("1", 0, None, "too_many_errors"),
        simulation("1", 1, 0.0),
        simulation("2", 0, None, "infrastructure_error"),
        simulation("2", 1, 1.0),
    ]
    path = written_json(tmp_path / "run.json", tau2(runs))
    refused(lambda: bk.load(path), "3 of 6", "2 not judged .*infrastructure_error", "missing=")
    data = bk.load(path, missing="ignore")
    assert only(data) == {"0": (0, 1, 1), "1": (1, 0, 1), "2": (0, 1, 1)}
    assert "too_many_errors" in data.card()
    assert only(bk.load(path, missing="wrong")) == {"0": (1, 1, 1), "1": (2, 0, 1), "2": (1, 1, 1)}


def test_the_folder_form_of_tau2_is_refused(tmp_path):
    """results.json without simulations, and a file for each beside it."""
    content = tau2([])
    del content["simulations"]
    path = written_json(tmp_path / "results.json", content)
    refused(lambda: bk.load(path), r"^results\.json")
    refused(lambda: bk.load(path, format="tau2-bench"), "must have trials")

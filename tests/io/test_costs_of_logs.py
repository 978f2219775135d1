"""What logs say of the cost of a trial: tokens, dollars, seconds, or any field."""

import json
from pathlib import Path

import pytest

import bayesatk as bk

LOGS = Path(__file__).parents[1] / "logs"


def _total(data: bk.Outcomes) -> float:
    return float(data.dataset["cost_sums"].sel(cost_sum="total").sum())


def test_inspect_says_tokens_seconds_and_dollars(tmp_path: Path) -> None:
    path = LOGS / "inspect" / "arithmetic_a.json"
    log = json.loads(path.read_text())
    used = [next(iter(one["model_usage"].values())) for one in log["samples"]]
    data = bk.load(path, cost="tokens")
    assert _total(data) == sum(one["total_tokens"] for one in used)
    assert data.dataset.attrs["cost_unit"] == "tokens"
    assert _total(bk.load(path, cost="output_tokens")) == sum(one["output_tokens"] for one in used)
    with pytest.raises(bk.OutcomeError, match=r"none says 'cost'.*'tokens'"):
        bk.load(path, cost="cost")
    for number, sample in enumerate(log["samples"], start=1):
        sample["model_usage"]["other"] = {"total_tokens": 1}
        for own in sample["model_usage"].values():
            own["total_cost"] = number / 1000
        sample["metadata"] = {"tokens": "of the question"}
    written = tmp_path / "paid.json"
    written.write_text(json.dumps(log))
    paid = bk.load(written, cost="cost")
    size = len(log["samples"])
    assert _total(paid) == pytest.approx(2 * size * (size + 1) / 2000)
    assert paid.dataset.attrs["cost_unit"] == "USD"
    # The samples' own usage, not metadata of the same name; which stay what they are elsewhere.
    assert _total(bk.load(written, cost="tokens")) == _total(data) + size
    assert "tokens" in bk.load(written, covariates="tokens").dataset.coords


def test_tau2_and_every_eval_ever_say_theirs(tmp_path: Path) -> None:
    log = json.loads((LOGS / "records" / "tau" / "tau2.json").read_text())
    for number, one in enumerate(log["simulations"], start=1):
        one["agent_cost"], one["duration"] = number / 100, float(number)
    path = tmp_path / "tau2.json"
    path.write_text(json.dumps(log))
    data = bk.load(path, cost="cost", missing="wrong")
    size = len(log["simulations"])
    assert _total(data) == pytest.approx(size * (size + 1) / 200)
    assert bk.load(path, cost="seconds", missing="ignore").dataset.attrs["cost_unit"] == "s"
    source = LOGS / "records" / "every_eval_ever" / "sums_alpha.jsonl"
    rows = [json.loads(line) for line in source.read_text().splitlines()]
    for row in rows:
        row["token_usage"] = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
        row["performance"] = {"latency_ms": 250.0}
    path = tmp_path / "sums.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    options = {"scorer": "sums/exact_match"}
    data = bk.load(path, cost="tokens", **options)
    assert _total(data) == 7 * data.trials.sum()
    assert _total(bk.load(path, cost="seconds", **options)) == pytest.approx(
        0.25 * data.trials.sum()
    )
    assert (
        _total(bk.load(path, cost="token_usage.output_tokens", **options)) == 4 * data.trials.sum()
    )
    rows[0]["token_usage"] = None
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(bk.OutcomeError, match="have no cost"):
        bk.load(path, cost="tokens", **options)


def test_a_converted_log_keeps_its_costs(tmp_path: Path) -> None:
    log, table = LOGS / "inspect" / "arithmetic_a.json", tmp_path / "runs.csv"
    bk.convert(log, table, cost="tokens")
    assert table.read_text().splitlines()[0] == "system,question,trial,outcome,cost"
    again = bk.load(table, cost="cost", cost_unit="tokens")
    assert _total(again) == _total(bk.load(log, cost="tokens"))
    with pytest.raises(bk.OutcomeError, match="name of a column"):
        bk.convert(log, tmp_path / "other.csv", cost=[1.0])  # type: ignore[arg-type]

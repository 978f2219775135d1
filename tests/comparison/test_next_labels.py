"""Which trials to mark by hand: one label exactly, many in simulation."""

import numpy as np
import pytest

import bayesatk as bk


def simulated(rng, questions=40, trials=3, labels=30, rates=(0.9, 0.2)):
    p = rng.beta(2.0, 1.0, questions)
    right = rng.random((questions, trials)) < p[:, None]
    marks = (rng.random(right.shape) < np.where(right, *rates)).astype(int)
    known = np.zeros(right.size, bool)
    known[rng.choice(right.size, labels, replace=False)] = True
    return marks, np.where(known.reshape(right.shape), right, np.nan), right


def fitted(marks, truth):
    return bk.evaluate(bk.tally(marks, truth=truth), "pass@1,3", difficulty="beta", rng=1)


def test_a_label_removes_what_both_answers_remove_on_average() -> None:
    """The truth of the chosen trial is set to right and to wrong, and all is fitted again."""
    marks, truth, _ = simulated(np.random.default_rng(3), questions=8, labels=8)
    fit = fitted(marks, truth)
    tree = bk.decide.next_labels(fit, 1)
    chosen = bk.table(tree, "labels_chosen").iloc[0]
    row = marks[chosen["question"]] == (chosen["mark"] == "right")
    trial = np.flatnonzero(row & np.isnan(truth[chosen["question"]]))[0]
    means = []
    for answer in (1.0, 0.0):
        told = truth.copy()
        told[chosen["question"], trial] = answer
        table = bk.table(fitted(marks, told)).query("metric == 'pass@1'")
        means.append(table.set_index("target").loc["questions", "mean"])
    p = chosen["prob_right"]
    variance = float(bk.table(fit).query("metric == 'pass@1'").iloc[0]["sd"]) ** 2
    gained = p * (1.0 - p) * (means[0] - means[1]) ** 2 / variance
    after = bk.table(tree, "labels").set_index("design").loc["chosen", "width"]
    assert 1.0 - after**2 == pytest.approx(gained, rel=0.25)


def test_no_other_trial_tells_more() -> None:
    marks, truth, _ = simulated(np.random.default_rng(5))
    tree = bk.decide.next_labels(fitted(marks, truth), [0, 1, 20], "pass@3")
    table = bk.table(tree, "labels").set_index(["labels", "design"])["width"]
    assert (table.loc[0] == 1.0).all()
    assert (table.loc[20, "chosen"] < table.loc[20]).sum() == 3
    assert table.loc[20, "chosen"] < table.loc[1, "chosen"] < 1.0


@pytest.mark.long
@pytest.mark.slow
def test_the_width_said_is_the_width_seen() -> None:
    rng = np.random.default_rng(8)
    said, seen = [], []
    for _ in range(8):
        marks, truth, right = simulated(rng, 100, 4, 50)
        fit = fitted(marks, truth)
        tree = bk.decide.next_labels(fit, 80)
        told = truth.copy()
        for row in bk.table(tree, "labels_chosen").itertuples():
            alike = (marks[row.question] == (row.mark == "right")) & np.isnan(told[row.question])
            places = np.flatnonzero(alike)[: row.labels]
            told[row.question, places] = right[row.question, places]
        assert np.isfinite(told).sum() == 50 + 80
        sds = [float(bk.table(one).iloc[0]["sd"]) for one in (fit, fitted(marks, told))]
        said.append(bk.table(tree, "labels").set_index("design").loc["chosen", "width"])
        seen.append(sds[1] / sds[0])
    assert np.mean(seen) == pytest.approx(np.mean(said), rel=0.2)
    assert np.mean(seen) < 0.85


@pytest.mark.long
def test_designs_run_out_and_systems_have_their_own(tmp_path) -> None:
    rng = np.random.default_rng(9)
    parts = {name: simulated(rng, 10, 3, 12) for name in "ab"}
    data = bk.tally(
        {name: part[0] for name, part in parts.items()},
        truth={name: part[1] for name, part in parts.items()},
    )
    fit = bk.evaluate(data, "pass@1", difficulty="beta", rng=1)
    tree = bk.decide.next_labels(fit, 18)
    table = bk.table(tree, "labels")
    assert set(table["system"]) == {"a", "b"}
    assert set(table["design"]) == {"chosen", "at random"}  # the others have fewer than 18 trials
    assert np.ptp(table.query("system == 'a'")["width"]) < 1e-9  # all trials that are left
    chosen = bk.table(tree, "labels_chosen")
    assert (chosen["labels"] <= chosen["trials"]).all()
    assert chosen.groupby("system")["labels"].sum().tolist() == [18, 18]
    assert "18 more labels leave" in bk.table(tree, "labels").sentences[0]
    path = tmp_path / "labels.nc"
    bk.save(tree, path)
    assert bk.table(bk.load_result(path), "labels_chosen").equals(chosen)


def test_bad_requests_are_refused() -> None:
    marks, truth, _ = simulated(np.random.default_rng(9), 10, 3, 12)
    fit = fitted(marks, truth)
    with pytest.raises(ValueError, match=r"labels must be at most 18, .*; got 19"):
        bk.decide.next_labels(fit, 19)
    with pytest.raises(ValueError, match=r"fit must have marks of a judge .* Pass truth"):
        bk.decide.next_labels(bk.evaluate(marks, "pass@1", rng=1), 1)
    with pytest.raises(ValueError, match="target must be"):
        bk.decide.next_labels(fit, 1, target="new_groups")

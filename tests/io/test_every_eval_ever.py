"""Results as documents of Every Eval Ever."""

import json
import subprocess
import sys
import uuid

import pytest

import bayesatk as bk

DATA = {"org/alpha": [[1, 0, 1], [0, 0, 1], [1, 1, 1]]}


def written(folder, metrics=("pass@1,2", "pass^2", "bayes"), **options):
    fit = bk.evaluate(DATA, list(metrics), rng=1, **options)
    path = bk.export(fit, folder / "alpha.eee.json")
    return fit, json.loads(path.read_text())


@pytest.mark.parametrize("options", [{}, {"pooling": "none", "ci_kind": "hdi", "ci_prob": 0.9}])
def test_the_numbers_are_those_of_the_table(tmp_path, options):
    fit, document = written(tmp_path, **options)
    rows = bk.table(fit).to_dict("records")
    assert len(rows) == len(document["evaluation_results"]) == 8
    for row, entry in zip(rows, document["evaluation_results"], strict=True):
        assert entry["evaluation_result_id"] == f"{row['metric']}/{row['target']}"
        told = entry["score_details"]
        observed = row["target"] == "questions"
        assert told["score"] == pytest.approx(row["estimate"] if observed else row["mean"])
        interval = told["uncertainty"]["confidence_interval"]
        assert interval["lower"] == row["ci_lower"]
        assert interval["upper"] == row["ci_upper"]
        assert interval["confidence_level"] == options.get("ci_prob", 0.95)
        assert told["uncertainty"]["standard_error"]["value"] == row["sd"]
        assert told["uncertainty"]["num_samples"] == 3
    first = document["evaluation_results"][2]
    assert first["metric_config"]["metric_parameters"] == {"k": 2}
    assert document["model_info"]["id"] == "org/alpha"


def test_more_trials_than_run_has_the_posterior_mean_as_score(tmp_path):
    fit, document = written(tmp_path, ("pass@8",))
    told = document["evaluation_results"][0]["score_details"]
    assert told["score"] == bk.table(fit)["mean"][0]
    assert told["details"]["score_is"] == "posterior mean"


def test_several_systems_have_a_file_each(tmp_path):
    systems = {"org/a": [[1, 0], [1, 1]], "org/b": [[1, 1], [0, 1]]}
    fit = bk.evaluate(systems, "pass@1", rng=1)
    assert bk.export(fit, tmp_path / "{system}.eee.json") == tmp_path
    for name, system in (("org_a", "org/a"), ("org_b", "org/b")):
        document = json.loads((tmp_path / f"{name}.eee.json").read_text())
        assert document["model_info"]["id"] == system
        rows = bk.table(fit).set_index(["system", "target"]).loc[system]
        scores = [entry["score_details"]["score"] for entry in document["evaluation_results"]]
        assert scores == [rows["estimate"]["questions"], rows["mean"]["population"]]


def test_several_systems_in_one_file_are_refused_with_a_name_that_works(tmp_path):
    fit = bk.evaluate({"a": [[1, 0]], "b": [[1, 1]]}, "pass@1", rng=1)
    with pytest.raises(ValueError, match=r"\{system\} in its name .* systems are a, b") as refused:
        bk.export(fit, tmp_path / "eee.json")
    assert not list(tmp_path.iterdir())
    bk.export(fit, str(refused.value).split("Write to ")[1].strip("'."))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.eee.json", "b.eee.json"]


def test_systems_of_one_file_name_are_refused(tmp_path):
    fit = bk.evaluate({"a/b": [[1, 0]], "a b": [[1, 1]]}, "pass@1", rng=1)
    with pytest.raises(ValueError, match="differ as file names"):
        bk.export(fit, tmp_path / "{system}.eee.json")
    assert not list(tmp_path.iterdir())


MARKS = [[1, 0, 1], [0, 0, 1], [1, 1, 1], [0, 1, 0]]
COSTS = [[3, 1, 4], [1, 5, 9], [2, 6, 5], [3, 5, 8]]
WITHOUT = [[0, 0], [0, 0], [0, 0]]  # no success: the cost of one has no mean


def costs(marks, **options):
    spent = [row[: len(marks[0])] for row in COSTS[: len(marks)]]
    data = bk.tally(marks, cost=spent, cost_unit="USD")
    return bk.costs.evaluate_cost(data, rng=1, draws=200, **options)


KINDS = {
    "right and wrong": lambda: bk.evaluate(MARKS, "pass@1,2 g-pass@2:0.5 mg-pass@2 auc@2", rng=1),
    "levels": lambda: bk.evaluate(
        bk.tally([list("abc"), list("bbc")], scores={"a": 0, "b": 0.5, "c": 1}), "max@2", rng=1
    ),
    "minutes": lambda: bk.evaluate(
        bk.tally(COSTS, scores="numbers", better="lower"), "bayes min@2", rng=1
    ),
    "votes": lambda: bk.evaluate(
        bk.tally([[1, 0, 1], [1, 1, 0]], answers=[["x", "y", "x"], ["u", "u", "v"]]),
        "plurality@3 pass@1", rng=1,
    ),
    "groups": lambda: bk.evaluate(
        bk.tally(MARKS, group=["a", "a", "a", "b"]), "pass@1", group="group", rng=1
    ),
    "missing": lambda: bk.evaluate(
        bk.tally([[1, None, 1], [0, 1, 1]], missing="bounds"), "pass@1", rng=1
    ),
    "judge": lambda: bk.evaluate(
        MARKS, "pass@1", judge=bk.JudgeError(tp=9, p=10, fp=1, n=10), rng=1
    ),
    "complete": lambda: bk.evaluate(MARKS, "pass@9", pooling="complete", rng=1),
    "compared": lambda: bk.compare(bk.evaluate({"a": MARKS, "b": MARKS[::-1]}, "pass@1", rng=1)),
    "costs": lambda: costs(MARKS, k=[1, 2], spend=[9]),
    "no success": lambda: costs(WITHOUT),
}  # fmt: skip


def test_the_validator_of_the_package_passes_the_file(tmp_path):
    """As its datastore names files (make test-schemas)."""
    pytest.importorskip("every_eval_ever")
    folder = tmp_path / "data/bench/org/alpha"
    folder.mkdir(parents=True)
    bk.export(bk.evaluate(DATA, "pass@1,2", rng=1), folder / "eee.json")
    path = (folder / "eee.json").rename(folder / f"{uuid.uuid4()}.json").relative_to(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "every_eval_ever", "validate", path],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert "1 passed, 0 warning-only, 0 failed" in done.stdout, done.stdout


@pytest.fixture(scope="module", params=KINDS)
def document(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    bk.export(KINDS[request.param](), folder / "{system}.eee.json")
    text = min(folder.iterdir()).read_text()
    return request.param, json.loads(text)


def test_every_result_has_uncertainty(document):
    kind, record = document
    results = record["evaluation_results"]
    labels = [entry["evaluation_result_id"] for entry in results]
    assert labels
    assert len(set(labels)) == len(labels)
    for entry in results:
        described, config = entry["score_details"], entry["metric_config"]
        money = config["metric_name"].partition(" ")[0] in (
            "mean_cost", "cost_if_right", "cost_if_wrong", "cost_of_pass", "cost_to_success"
        )  # fmt: skip
        assert config["lower_is_better"] == (kind == "minutes" or money)
        assert ("min_score" in config) == (kind != "minutes" and not money and (
            not config["metric_name"].startswith("tries_at_budget")))  # fmt: skip
        interval = described["uncertainty"]["confidence_interval"]
        assert interval["lower"] <= interval["upper"]
        if "min_score" in config:
            assert interval["lower"] >= -1e-12  # rounding
            assert interval["upper"] <= 1.0 + 1e-12
            if described["details"]["score_is"] == "posterior mean":
                assert interval["lower"] <= described["score"] <= interval["upper"]
    if kind == "groups":
        sizes = {label: entry["score_details"]["uncertainty"]["num_samples"]
                 for label, entry in zip(labels, results, strict=True)}  # fmt: skip
        assert sizes["pass@1/questions"] == sizes["pass@1/new_groups"] == 4
        assert sizes["pass@1/questions/group=a"] == 3
        assert sizes["pass@1/population/group=b"] == 1
    if kind == "right and wrong":
        parameters = {entry["evaluation_name"]: entry["metric_config"]["metric_parameters"]
                      for entry in results}  # fmt: skip
        assert parameters["g-pass@2:0.5"] == {"k": 2, "tau": 0.5}
    left_out = record["eval_library"].get("additional_details", {})
    assert bool(left_out) == (kind == "no success")
    if left_out:
        assert "cost_of_pass" in left_out["without_a_finite_score"]


def test_the_package_accepts_the_document(document):
    """By the data classes that the package makes from its schema (make test-schemas)."""
    types = pytest.importorskip("every_eval_ever.eval_types")
    accepted = types.EvaluationLog.model_validate(document[1])
    for entry in accepted.evaluation_results:
        interval = entry.score_details.uncertainty.confidence_interval
        assert interval.confidence_level == 0.95

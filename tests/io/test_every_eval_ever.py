"""Results as documents of Every Eval Ever."""

import json

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


def test_several_systems_are_refused(tmp_path):
    fit = bk.evaluate({"a": [[1, 0]], "b": [[1, 1]]}, "pass@1", rng=1)
    with pytest.raises(ValueError, match=r"one system .* got a, b"):
        bk.export(fit, tmp_path / "eee.json")
    assert not (tmp_path / "eee.json").exists()


def test_the_package_accepts_the_document(tmp_path):
    """By the data classes that the package makes from its schema (make test-schemas)."""
    types = pytest.importorskip("every_eval_ever.eval_types")
    for options in ({}, {"pooling": "none"}):
        _, document = written(tmp_path, **options)
        accepted = types.EvaluationLog.model_validate(document)
        uncertainty = accepted.evaluation_results[0].score_details.uncertainty
        assert uncertainty.confidence_interval.confidence_level == 0.95

"""A result read back is what it was made from, in memory and from a file."""

import arviz as az
import numpy as np
import pytest

import bayesatk as bk
from bayesatk.metrics.grid import parse
from bayesatk.results import Result

RUNS = {"a": [[1, 1, 0], [0, 1, 1], [0, 0, 0]], "b": [[1, 1, 1], [0, 1, 0], [1, 0, 0]]}
SCORES = {"no": 0.0, "part": 0.5, "yes": 1.0}
GRADED = {"a": [["no", "part", "yes"]] * 3, "b": [["yes", "yes", "part"]] * 3}
ANSWERS = {"a": [["4", "4", "5"], ["x", "y", None]], "b": [["4", "5", "5"], ["y", "y", "x"]]}


def right_and_wrong() -> tuple[bk.Outcomes, dict]:
    return bk.tally(RUNS), {
        "metrics": ["pass@1,2", "bayes"],
        "prior": bk.priors.HyperPrior((2.0, 3.0), families="beta"),
    }


def graded() -> tuple[bk.Outcomes, dict]:
    data = bk.tally(GRADED, scores=SCORES)
    return data, {"metrics": "max@1,2", "pooling": "none", "prior_trials": data}


def voted() -> tuple[bk.Outcomes, dict]:
    data = bk.tally(None, answers=ANSWERS, reference=["4", "y"])
    options = {"pooling": "none", "answer_prior": bk.priors.AnswerPrior(2.0)}
    return data, {"metrics": ["bayes", "plurality@3"], **options}


@pytest.mark.parametrize("case", [right_and_wrong, graded, voted])
def test_data_metrics_and_prior_come_back(case, tmp_path) -> None:
    data, options = case()
    fit = bk.evaluate(data, draws=20, ci_prob=0.8, ci_kind="hdi", rng=1, **options)
    saved = bk.load_result(bk.save(fit, tmp_path / "fit.nc"))
    for own in (Result.of(fit), Result.of(saved)):
        read = own.data
        for name in ("count", "missing", "system", "question", "score"):
            assert np.array_equal(read.dataset[name].values, data.dataset[name].values), name
        assert read.notes == data.notes
        assert read.systems == own.systems == ["a", "b"]
        labels = {one.label for one in own.metrics}
        assert labels == {one.label for one in parse(options["metrics"])}
        assert own.pooling == options.get("pooling", "partial")
        assert (own.ci_prob, own.ci_kind, own.sampled) == (0.8, "hdi", False)
        assert own.size == 80
        if "prior" in options:
            assert own.prior == options["prior"]
        if "answer_prior" in options:
            assert own.answer_prior == options["answer_prior"]
            assert read.answers is not None
            assert sorted(read.answers.label) == sorted(data.answers.label)
            assert np.array_equal(read.answers.unanswered, data.answers.unanswered)
        assert (own.scale.axes == ("category",)) == (case is graded)
        assert (own.prior_counts is not None) == (case is graded)


def test_evaluating_the_data_read_back_gives_the_same_numbers() -> None:
    fit = bk.evaluate(RUNS, ["pass@1,4"], difficulty="beta", draws=20, rng=1)
    own = Result.of(fit)
    again = bk.evaluate(own.data, own.metrics, prior=own.prior, draws=20, rng=1)
    np.testing.assert_array_equal(
        again["closed_form"]["pass_at_k"].values, fit["closed_form"]["pass_at_k"].values
    )


def test_functions_take_the_object_as_they_take_the_tree() -> None:
    fit = bk.evaluate(RUNS, "pass@1,2", difficulty="beta", draws=50, rng=1)
    own = Result.of(fit)
    assert Result.of(own) is own
    assert bk.table(own).equals(bk.table(fit))
    one, other = (bk.compare(each) for each in (own, fit))
    assert one["comparison"].identical(other["comparison"])
    assert bk.table(Result.of(one), "comparison").equals(bk.table(other, "comparison"))


def test_what_is_no_result_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="evaluate or"):
        Result.of({"posterior": 1})
    with pytest.raises(ValueError, match="'comparison'"):
        Result.of(bk.evaluate(RUNS, "bayes", draws=5, rng=1), "comparison")


def test_the_families_of_difficulties_come_back(tmp_path) -> None:
    fit = bk.evaluate(RUNS, "bayes", difficulty={"beta": 3, "mixture": 1}, draws=20, rng=1)
    own = Result.of(bk.load_result(bk.save(fit, tmp_path / "fit.nc")))
    assert own.families == {"beta": 0.75, "mixture": 0.25}
    assert own.group("difficulty").identical(fit["difficulty"].to_dataset())
    alone = bk.evaluate(RUNS, "bayes", pooling="none", draws=20, rng=1)
    assert Result.of(alone).families == {}
    assert not Result.of(alone).has("difficulty")


def test_a_result_without_its_systems_is_refused_where_they_are_needed() -> None:
    fit = bk.evaluate({"a": [[0, 1], [1, 1]], "b": [[1, 1], [0, 0]]}, "bayes", draws=10, rng=1)
    with pytest.raises(ValueError, match="dimension of systems"):
        bk.checks.log_evidence(fit.sel(system="a"))


def test_draws_of_p_are_tabulated_whatever_the_questions_have() -> None:
    """ArviZ takes no coordinates of questions but their labels."""
    data = bk.tally([[1, 0], [1, 1], [0, 0]], weight=[1, 2, 3.0], group=["x", "x", "y"])
    fit = bk.evaluate(data, "pass@1", pooling="none", keep=["p"], rng=1)
    assert len(az.summary(fit, var_names=["p"])) == 3
    assert fit["constant_data"]["weight"].values.tolist() == [1.0, 2.0, 3.0]


def test_scored_categories_are_named_where_they_are_refused() -> None:
    scores = {"no": 0, "part": 0.5, "yes": 1}
    fit = bk.evaluate(bk.tally([["no", "part", "yes"]] * 2, scores=scores), "bayes", rng=1)
    with pytest.raises(ValueError, match=r"scored categories .*success='score >= 0.5'"):
        bk.checks.tail_exponent(fit)

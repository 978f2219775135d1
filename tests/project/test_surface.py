"""What somebody types who guesses: names in the wrong place, arguments by another name."""

import pickle
from dataclasses import fields
from inspect import signature

import pytest

import bayesatk as bk
from bayesatk.io.options import FileOptions


@pytest.mark.parametrize(
    ("place", "name", "answer"),
    [
        (bk, "gate", "bayesatk.decide.gate"),
        (bk, "HyperPrior", "bayesatk.priors.HyperPrior"),
        (bk, "evaluate_cost", "bayesatk.costs.evaluate_cost"),
        (bk, "calibrate", "bayesatk.checks.calibrate"),
        (bk.decide, "evaluate", "bayesatk.evaluate"),
        (bk.published, "gate", "bayesatk.decide.gate"),
        (bk, "summary", "Perhaps bayesatk.table was meant"),
        (bk, "evalute", "Perhaps bayesatk.evaluate was meant"),
    ],
)
def test_a_name_in_the_wrong_place_says_where_it_is(place, name, answer) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(place, name)
    assert str(raised.value).startswith(f"{place.__name__} has no {name!r}.")
    assert answer in str(raised.value)
    assert not hasattr(place, name)


def test_published_functions_say_what_gives_a_posterior() -> None:
    with pytest.raises(AttributeError, match=r"bayesatk\.published\.pass_at_k.*evaluate\(data"):
        _ = bk.pass_at_k


def test_a_name_like_nothing_lists_what_there_is() -> None:
    with pytest.raises(AttributeError, match=r"It has GatePolicy, .*simulate_stopping"):
        _ = bk.decide.nothing


DATA = [[1, 0], [1, 1]]
FIT = bk.evaluate(DATA, "pass@1", rng=1, draws=10)


@pytest.mark.parametrize(
    ("call", "options", "answer"),
    [
        (bk.evaluate, {"seed": 1}, "Its name is 'rng'"),
        (bk.evaluate, {"groups": "domain"}, "Its name is 'group'"),
        (bk.evaluate, {"n_samples": 100}, "Its name is 'draws'"),
        (bk.evaluate, {"weights": [1, 2]}, "given with the data: bayesatk.tally(data, weight=...)"),
        (bk.evaluate, {"confidence": 0.9}, "Its name is 'ci_prob'"),
        (bk.tally, {"weights": [1, 2]}, "Its name is 'weight'"),
        (bk.checks.extrapolation_range, {"confidence": 0.9}, "Its name is 'ci_prob'"),
        (bk.compare, {"margin": 0.1}, "Its name is 'rope'"),
        (bk.compare, {"rop": 0.1}, "Its name is 'rope'"),
        (bk.decide.noise_floor, {"prob": 0.9}, "Its name is 'ci_prob'"),
        (bk.guessing.random_baseline, {"p": 0.5}, "Its name is 'guess'"),
        (bk.notes, {"anything": 1}, "It has fit."),
    ],
)
def test_an_argument_by_another_name_says_what_it_is_called(call, options, answer) -> None:
    with pytest.raises(TypeError) as raised:
        call(DATA, "pass@1", **options) if call is bk.evaluate else call(FIT, **options)
    assert str(raised.value).startswith(
        f"{call.__name__}() has no argument {next(iter(options))!r}"
    )
    assert answer in str(raised.value)


def test_public_functions_are_pickled_by_their_public_names() -> None:
    for function in (bk.evaluate, bk.decide.gate, bk.published.pass_at_k):
        assert pickle.loads(pickle.dumps(function)) is function


def test_what_takes_a_result_calls_it_fit() -> None:
    for place, names in (
        (bk, "table compare report notes claim leaderboard save export cite predict"),
        (bk.decide, "noise_floor horizon crossing next_questions e_value"),
        (bk.checks, "question_table criticise exact_loo log_evidence tail_exponent"),
        (bk.guessing, "random_baseline baseline_table"),
        (bk.costs, "compare_cost pareto"),
        (bk.plots, "plot_curve plot_systems plot_difference plot_ranks plot_gate plot_cost"),
    ):
        for name in names.split():
            function = getattr(place, name).__wrapped__
            while hasattr(function, "__wrapped__"):
                function = function.__wrapped__
            assert function.__code__.co_varnames[0] == "fit", name


def test_what_is_no_policy_metric_or_comparison_says_what_to_write() -> None:
    two = bk.evaluate({"a": DATA, "b": DATA}, "pass@1", rng=1, draws=10)
    for call, answer in (
        (
            lambda: bk.decide.gate(DATA, DATA, "pass@1"),
            r"policy must be a GatePolicy; got 'pass@1'",
        ),
        (lambda: bk.checks.extrapolation_range(FIT, 32), "metrics must be text or Metrics; got 32"),
        (lambda: bk.evaluate(DATA, 4), "metrics must be text or Metrics; got 4"),
        (lambda: bk.claim(two), r"Name one, or .*bayesatk\.claim\(bayesatk\.compare\(fit\)\)"),
    ):
        with pytest.raises(ValueError, match=answer):
            call()
    rows = bk.checks.extrapolation_range(two, "pass@32")
    assert rows["system"].drop_duplicates().tolist() == ["a", "b"]


@pytest.mark.parametrize("function", [bk.load, bk.convert])
def test_options_of_files_are_declared_alike(function) -> None:
    parameters = signature(function).parameters
    for option in fields(FileOptions):
        parameter = parameters[option.name]
        assert (parameter.annotation, parameter.default) == (option.type, option.default)


@pytest.mark.long
def test_groups_are_known_by_the_name_of_their_column(tmp_path) -> None:
    rows = [f"q{q},{q % 2},d{q % 3}" for q in range(9)] * 2
    (tmp_path / "runs.csv").write_text("\n".join(["question,outcome,domain", *rows]))
    data = bk.load(tmp_path / "runs.csv", group="domain")
    assert "group 'domain' (3 values)" in str(data)
    named = bk.evaluate(data, "pass@1", group="domain", rng=1, draws=10)
    plain = bk.evaluate(data, "pass@1", group="group", rng=1, draws=10)
    assert bk.table(named, by="group").equals(bk.table(plain, by="group"))
    title, headings, *rows = str(bk.table(named, by="group")).splitlines()
    assert title == "Groups of questions"
    assert "95% interval" in headings
    assert rows[0].split()[:2] == ["system", "d0"]
    unused = bk.evaluate(data, "pass@1", rng=1, draws=10)
    assert any("evaluate with group='domain'" in note for note in bk.notes(unused))
    with pytest.raises(ValueError, match="they have domain; got 'domains'"):
        bk.evaluate(data, "pass@1", group="domains")
    again = bk.load_result(bk.save(unused, tmp_path / "fit.nc"))
    assert bk.Result(again).data.dataset["group"].attrs["long_name"] == "domain"

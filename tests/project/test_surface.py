"""Arguments of the wrong kind, options of files, and names of columns."""

from dataclasses import fields
from inspect import signature

import pytest
import xarray as xr

import bayesatk as bk
from bayesatk.io.load_options import FileOptions, LogOptions

DATA = [[1, 0], [1, 1]]
FIT = bk.evaluate(DATA, "pass@1", rng=1, draws=10)
TWO = bk.evaluate({"a": DATA, "b": DATA}, "pass@1", rng=1, draws=10)
OTHER = FIT.drop_nodes("closed_form")


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (lambda: bk.decide.gate(DATA, DATA, "pass@1"), "policy must be a GatePolicy; got 'pass@1'"),
        (lambda: bk.checks.extrapolation_range(FIT, 32), "metrics must be text or Metrics; got 32"),
        (lambda: bk.evaluate(DATA, 4), "metrics must be text or Metrics; got 4"),
        (lambda: bk.plan((0.6, 0.3), "pass@1", width=10), r"smaller than 1, .* Try width=0\.1"),
        (lambda: bk.claim(bk.compare(TWO), other="b"), r"got None\. Name one\.$"),
        (
            lambda: bk.verify(bk.evaluate(DATA, "pass@1", difficulty="beta", rng=1), OTHER),
            r"the same difficulty; got \{'beta': 1\.0\} and .* same difficulty='beta' to evaluate",
        ),
        (lambda: bk.claim(TWO), r"Name one, or .*bayesatk\.claim\(bayesatk\.compare\(fit\)\)"),
    ],
)
def test_what_is_no_policy_metric_or_comparison_says_what_to_write(call, answer) -> None:
    with pytest.raises(ValueError, match=answer):
        call()


def test_what_is_no_result_says_how_to_make_one() -> None:
    with pytest.raises(TypeError, match=r"got Outcomes\. Evaluate data first, bayesatk\.evaluate"):
        bk.compare(bk.tally(DATA))
    with pytest.raises(TypeError, match=r"got DataTree\. Draws .* by bayesatk\.from_draws\("):
        bk.table(xr.DataTree())


@pytest.mark.parametrize("function", [bk.load, bk.convert])
def test_options_of_files_are_declared_alike(function) -> None:
    parameters = signature(function).parameters
    for option in fields(FileOptions):
        if option.name in parameters:
            parameter = parameters[option.name]
            assert (parameter.annotation, parameter.default) == (option.type, option.default)
        else:
            assert LogOptions.__annotations__[option.name] == option.type


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
    unused = bk.evaluate(data, "pass@1", group=False, rng=1, draws=10)
    with pytest.raises(ValueError, match="they have domain; got 'domains'"):
        bk.evaluate(data, "pass@1", group="domains")
    again = bk.load_result(bk.save(unused, tmp_path / "fit.nc"))
    assert bk.Result(again).data.dataset["group"].attrs["long_name"] == "domain"

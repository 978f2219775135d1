"""What `print` shows of a result and of the tables of analyses."""

import copy
import pickle

import numpy as np
import pytest
import xarray as xr

import bayesatk as bk

RNG = np.random.default_rng(5)
MARKS = {name: RNG.binomial(1, RNG.beta(1, 1, 25)[:, None], (25, 4)) for name in ("new", "old")}
FIT = bk.evaluate(MARKS, "pass@1,2,4", rng=1, draws=50)
COMPARED = bk.compare(FIT)


def test_a_result_prints_ten_lines_or_so_and_its_groups_on_request() -> None:
    lines = str(FIT).splitlines()
    assert len(lines) <= 11
    assert lines[0] == "2 systems x 25 questions, 200 trials; pass@1 pass@2 pass@4"
    assert "pooling=partial" in lines[1]
    assert "95% intervals" in lines[1]
    assert lines[-2] == "... 8 more rows: bayesatk.table(fit)"
    for call in ("bayesatk.table(fit)", "bayesatk.compare(fit)", "bayesatk.report(", "fit.tree"):
        assert call in lines[-1]
    assert "bayesatk.table(fit, 'comparison')" in str(COMPARED)
    assert "bayesatk.compare(fit)" not in str(COMPARED)
    assert type(FIT.tree) is xr.DataTree
    assert FIT.tree.identical(FIT)
    assert str(FIT.tree).startswith("<xarray.DataTree>")
    assert lines[0] in FIT._repr_html_()
    assert repr(FIT["posterior"]).startswith("<xarray.DataTree"), "a group is no result"


def test_a_copy_or_a_saved_result_prints_the_same(tmp_path) -> None:
    read = bk.load_result(bk.save(FIT, tmp_path / "fit.nc"))
    for same in (read, FIT.copy(), copy.deepcopy(FIT), pickle.loads(pickle.dumps(FIT))):
        assert str(same) == str(FIT)
        assert same.identical(FIT)


def test_an_analysis_without_a_posterior_prints_its_table() -> None:
    plan = bk.plan((0.6, 0.3), "pass@1", width=0.2)
    assert str(plan).startswith("Questions needed for pass@1")
    assert str(plan).endswith("Next: bayesatk.table(fit, 'plan'), fit.tree")
    assert str(FIT.sel(system="new")).startswith("<xarray.DataTree>")


@pytest.mark.parametrize(
    "table",
    [
        lambda: bk.table(COMPARED, "comparison"),
        lambda: bk.decide.e_value(FIT),
        lambda: bk.decide.noise_floor(FIT),
        lambda: bk.checks.criticise(FIT, rng=1),
        lambda: bk.checks.question_table(FIT),
        lambda: bk.checks.question_table(FIT, system="new", other="old"),
        lambda: bk.checks.check_trials(MARKS),
        lambda: bk.checks.tail_exponent(FIT),
    ],
)
def test_tables_print_the_columns_that_are_read(table) -> None:
    frame = table()
    shown = str(frame)
    heading, *rows = shown.removeprefix("Differences between systems\n").splitlines()
    assert heading.split()[0] in ("system", "pair")
    assert "rope" not in heading, "none was asked for"
    assert "..." not in heading
    assert len(heading) <= 130
    assert all("..." not in row or row.split() == ["..."] * len(row.split()) for row in rows[:20])
    if "sentence" in frame:
        assert any(sentence in shown for sentence in frame["sentence"]), "whole"
    assert repr(frame[["system"]]) == repr(frame[["system"]].copy())
    assert heading.split()[0] in frame._repr_html_()
    some = frame.iloc[:1]
    assert len(str(some)) <= len(shown)


def test_long_tables_say_how_many_sentences_are_left_out() -> None:
    marks = {f"system {i}": MARKS["new"] for i in range(5)}
    fit = bk.compare(bk.evaluate(marks, "pass@1", rng=1, draws=50))
    shown = str(bk.table(fit, "comparison"))
    assert " more in the column 'sentence'." in shown
    assert len(shown) < 6000


def test_costs_and_coefficients_are_tables_like_others() -> None:
    data = bk.tally(MARKS, cost={name: 1.0 + marks for name, marks in MARKS.items()},
                    covariates={"size": np.arange(25.0)}, cost_unit="USD")  # fmt: skip
    options = {"difficulty": "beta", "rng": 1}
    costs = bk.evaluate(data, "pass@1 cost", draws=100, **options)
    assert "; pass@1 cost" in str(costs)
    assert "cost: the expected cost of a new trial, in USD; lower is better." in str(
        bk.table(costs)
    )
    shown = str(bk.table(bk.compare(costs), "comparison"))
    assert "On questions like these a trial costs " in shown
    fit = bk.evaluate(data, "pass@1", covariates=["size"], **options)
    shown = str(bk.table(fit, "coefficients"))
    assert "95% interval" in shown
    assert "size" in shown
    assert "..." not in shown

"""What a person sees of a table of results."""

import re

import pandas as pd
import pytest

import bayesatk as bk
from bayesatk.results.views import view

RUNS = {"<b>a</b>": [[1, 1, 0], [0, 1, 1]], "b": [[1, 1, 1], [0, 1, 0]]}


def test_rows_have_their_numbers_and_what_columns_mean() -> None:
    fit = bk.evaluate(RUNS, ["pass@1,8"], ci_prob=0.8, draws=50, rng=1)
    table = bk.table(fit)
    text = str(table)
    cells = fit["closed_form"]["pass_at_k"].sel(system="b", k=1)
    lines = text.splitlines()
    (first,) = (i for i, line in enumerate(lines) if re.match(r" *b +pass@1 ", line))
    found = [float(each) for each in re.findall(r"\d\.\d{3}", " ".join(lines[first : first + 2]))]
    expected = [float(cells.sel(statistic="estimate", target="questions"))]
    for target in ("questions", "population"):
        own = cells.sel(target=target)
        expected += [
            float(own.sel(statistic=each)) for each in ("mean", "sd", "ci_lower", "ci_upper")
        ]
    assert found == [round(each, 3) for each in expected]
    assert text.count("k>n") == 2 + 1  # twice in the table, once where it is explained
    assert "k>n" not in str(bk.table(bk.evaluate(RUNS, "pass@1", draws=50, rng=1)))
    for words in ("80% interval", "these (target 'questions')", "target 'population'"):
        assert words in text


def test_a_notebook_shows_the_same_and_names_as_text() -> None:
    page = bk.table(bk.evaluate(RUNS, "bayes", draws=50, rng=1))._repr_html_()
    assert "&lt;b&gt;a&lt;/b&gt;" in page
    assert "<b>a</b>" not in page
    for words in ("exactly these questions", "like these", "95% interval", "observed"):
        assert words in page


def test_what_is_taken_from_it_is_an_ordinary_frame() -> None:
    table = bk.table(bk.evaluate(RUNS, "bayes", draws=50, rng=1))
    assert isinstance(table, pd.DataFrame)
    assert "exactly these" in str(table.head(1))
    for part in (table[["mean", "sd"]], table.assign(more=1.0)):
        assert "exactly these" not in str(part)
        assert str(part) == str(pd.DataFrame(part))


def test_a_sampled_result_has_observed_values_too() -> None:
    fit = bk.evaluate(RUNS, "bayes", draws=200, rng=1)
    exact = bk.table(fit)["estimate"]
    del fit["closed_form"]
    shown = bk.table(fit)
    assert shown["estimate"].tolist() == pytest.approx(exact.tolist())
    assert "95% interval" in str(shown)


def test_equal_runs_are_equal_though_made_at_different_times() -> None:
    one, other = (bk.evaluate(RUNS, "bayes", draws=20, rng=1) for _ in range(2))
    other.attrs["created_at"] = "2020-01-01T00:00:00+00:00"
    assert not one.identical(other)
    assert one.equals(other)
    other["posterior"]["bayes"][0, 0, 0, 0] += 1e-9
    assert not one.equals(other)


def test_equal_numbers_of_two_groups_are_both_printed():
    frame = pd.DataFrame(
        {
            "system": ["a"] * 4,
            "group": ["x", "x", "y", "y"],
            "target": ["questions", "population"] * 2,
            "estimate": [0.61] * 4,
        }
    )
    assert view(frame, "groups").text().count("0.610") == 2  # of each group once

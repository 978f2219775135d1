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


def test_a_result_prints_its_table_whole_and_its_groups_on_request() -> None:
    shown = str(FIT)
    lines = shown.splitlines()
    assert lines[0] == "2 systems x 25 questions, 200 trials; pass@1 pass@2 pass@4"
    assert "pooling=partial" in lines[1]
    assert "95% intervals" in lines[1]
    assert str(bk.table(FIT)) in shown
    for call in ("bayesatk.compare(fit)", "bayesatk.report(", "fit.tree"):
        assert call in lines[-1]
    assert type(FIT.tree) is xr.DataTree
    assert FIT.tree.identical(FIT)
    assert str(FIT.tree).startswith("<xarray.DataTree>")
    assert lines[0] in FIT._repr_html_()
    assert repr(FIT["posterior"]).startswith("<xarray.DataTree"), "a group is no result"


@pytest.mark.parametrize(
    ("analyse", "name"),
    [
        (bk.compare, "comparison"),
        (bk.leaderboard, "leaderboard"),
        (lambda fit: bk.plan(fit, "pass@1", width=0.2), "plan"),
        (lambda fit: bk.compare(fit, contrast={"new": 1, "old": -1}), "contrast"),
        (lambda fit: bk.guessing.random_baseline(fit, 0.25, rng=1), "random_baseline"),
    ],
)
def test_the_newest_analysis_is_what_a_result_prints_and_tabulates(analyse, name, tmp_path) -> None:
    found = analyse(bk.leaderboard(bk.compare(FIT)))
    table = bk.table(found)
    assert table.attrs["analysis"] == name
    assert str(table) in str(found)
    assert table.equals(bk.table(found, name))
    assert "bayesatk.table(fit, 'results')" in str(found).splitlines()[-1]
    assert str(bk.load_result(bk.save(found, tmp_path / "found.nc"))) == str(found)
    of_one = found.sel(system=["new"])
    assert bk.table(of_one).attrs["analysis"] == (name if name in of_one else "results")


def test_pairs_are_printed_once_with_a_sentence_and_notes() -> None:
    marks = {**MARKS, "other": MARKS["old"][::-1]}
    fit = bk.evaluate(marks, "pass@1,2,8", rng=1, draws=50)
    table = bk.table(bk.compare(fit))
    shown = str(table)
    means = bk.table(fit).query("metric == 'pass@1' and target == 'questions'")
    first, second, last = means.sort_values("mean", ascending=False)["system"]
    assert [*table[["system", "other"]].drop_duplicates().itertuples(index=False, name=None)] == [
        (first, second),
        (first, last),
        (second, last),
    ]
    assert not [sentence for sentence in table["sentence"] if sentence in shown]
    assert "3 systems scored " in shown
    assert "declared worse than one of it" in shown
    of_two = str(bk.table(bk.compare(fit.sel(system=[first, last]))))
    assert "P(better)" in of_two.partition("\nNote: ")[0].splitlines()[-1]
    notes = bk.Result.of(fit).notes_on()
    assert all(f"Note: {note}" in shown for note in notes)
    assert all(f"Note: {note}" in str(fit) for note in fit.notes)


def test_a_copy_or_a_saved_result_prints_the_same(tmp_path) -> None:
    read = bk.load_result(bk.save(FIT, tmp_path / "fit.nc"))
    for same in (read, FIT.copy(), copy.deepcopy(FIT), pickle.loads(pickle.dumps(FIT))):
        assert str(same) == str(FIT)
        assert same.identical(FIT)


def test_an_analysis_without_a_posterior_prints_its_table() -> None:
    plan = bk.plan((0.6, 0.3), "pass@1", width=0.2)
    assert str(plan).startswith("Questions needed for pass@1")
    assert str(plan).endswith("Next: fit.tree")
    assert str(FIT.sel(system="new")).startswith("<xarray.DataTree>")


@pytest.mark.parametrize("labels", [{"target": "questions"}, {"k": [1]}, {"question": [0, 1]}])
def test_a_part_of_a_result_has_its_numbers_and_is_no_result(labels) -> None:
    part = FIT.sel(labels)
    assert str(part).startswith("<xarray.DataTree>")
    in_group = {"question": "observed_data"}.get(*labels, "closed_form")
    assert part[in_group].to_dataset().identical(FIT[in_group].to_dataset().sel(labels))
    with pytest.raises(TypeError, match=f"a part along {next(iter(labels))} was selected"):
        bk.table(part)


def test_systems_are_selected_by_position_as_by_label_and_draws_may_be_fewer() -> None:
    assert COMPARED.isel(system=[1]).identical(COMPARED.sel(system=["old"]))
    assert FIT.isel(system=0).identical(FIT.sel(system="new"))
    fewer = FIT.sel(system=["new"], draw=slice(0, 9), chain=[0])
    assert fewer["posterior"].sizes["draw"] == 10
    assert str(bk.table(fewer)) == str(bk.table(FIT.sel(system=["new"])))


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


def test_an_e_value_of_which_nothing_is_known_is_not_said_to_lack_trials() -> None:
    shown = str(bk.decide.e_value({"a": [[1], [0]], "b": [[1], [0]]}))
    assert shown.splitlines()[1].split()[:5] == ["a", "-", "b", "1.000", "-"]
    assert "k>n" not in shown
    assert "-: no question that is used says anything of it." in shown


def test_long_tables_say_how_many_sentences_are_left_out() -> None:
    marks = {f"system {i}": MARKS["new"] for i in range(5)}
    shown = str(bk.checks.criticise(bk.evaluate(marks, "pass@1", rng=1, draws=50), rng=1))
    assert " more in the column 'sentence'." in shown
    assert len(shown) < 6000


def test_costs_and_coefficients_are_tables_like_others() -> None:
    data = bk.tally(
        MARKS,
        cost={name: 1.0 + marks for name, marks in MARKS.items()},
        covariates={"size": np.arange(25.0)},
        cost_unit="USD",
    )
    options = {"difficulty": "beta", "rng": 1}
    costs = bk.evaluate(data, "pass@1 cost", draws=100, **options)
    assert "; pass@1 cost" in str(costs)
    assert "cost: the expected cost of a new trial, in USD; lower is better." in str(
        bk.table(costs)
    )
    sentences = bk.table(bk.compare(costs))["sentence"]
    assert sentences.str.contains("On questions like these a trial costs ").any()
    fit = bk.evaluate(data, "pass@1", covariates=["size"], **options)
    shown = str(bk.table(fit, "coefficients"))
    assert "95% interval" in shown
    assert "size" in shown
    assert "..." not in shown

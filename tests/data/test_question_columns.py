"""What is known of the questions travels with the counts, into results and back from files."""

import numpy as np
import pytest
import xarray as xr

import bayesatk as bk
from bayesatk.results.result import Result

DOMAIN, MINUTES = ["law", "law", "art"], [1.5, 20.0, 3.0]
MARKS = np.array([[[1, 0], [1, 1], [0, 0]], [[0, 0], [1, np.nan], [1, 0]]])
ARRAY = xr.DataArray(
    MARKS,
    dims=("system", "question", "trial"),
    coords={
        "question": ["x", "y", "z"],
        "domain": ("question", DOMAIN),
        "minutes": ("question", MINUTES),
        "odd": ("question", np.array([{}, [], 1], object)),
        "seed": ("trial", [7, 8]),
    },
)


def known(dataset):
    return dataset["domain"].values.tolist(), dataset["minutes"].values.tolist()


@pytest.mark.parametrize("lazy", [False, True])
def test_coordinates_of_questions_are_kept(lazy):
    data = bk.tally(ARRAY.chunk() if lazy else ARRAY, missing="ignore")
    assert known(data.dataset) == (DOMAIN, MINUTES)
    assert set(data.dataset.coords) == {
        "system",
        "question",
        "category",
        "score",
        "domain",
        "minutes",
    }
    assert "questions have: domain (2 values), minutes (3 values)" in data.card()
    again = bk.tally(data.dataset, questions=["a", "b", "c"])
    assert known(again.dataset) == (DOMAIN, MINUTES)
    assert known(data.with_success("score > 0").dataset) == (DOMAIN, MINUTES)


def test_coordinates_follow_the_questions_that_are_kept():
    data = bk.tally(ARRAY.where(ARRAY["question"] != "y"), missing="ignore").shared()
    assert known(data.dataset) == (["law", "art"], [1.5, 3.0])


def test_coordinates_change_no_count_and_reach_saved_results(tmp_path):
    plain = ARRAY.drop_vars(["domain", "minutes", "odd"])
    data, bare = (bk.tally(source, missing="ignore") for source in (ARRAY, plain))
    assert data.sha256() == bare.sha256()
    fit, without = (
        bk.evaluate(source, "pass@1", difficulty="beta", draws=10, rng=1) for source in (data, bare)
    )
    assert known(fit["constant_data"]) == (DOMAIN, MINUTES)
    xr.testing.assert_equal(fit["posterior"].dataset, without["posterior"].dataset)
    saved = bk.load_result(bk.save(fit, tmp_path / "fit.nc"))
    assert known(saved["constant_data"]) == (DOMAIN, MINUTES)
    again = Result.of(saved).data
    assert known(again.dataset) == (DOMAIN, MINUTES)
    assert again.sha256() == data.sha256()
    assert bk.compare(saved)["closed_form"].equals(bk.compare(without)["closed_form"])


def test_names_of_results_are_not_taken():
    taken = {name: ("question", [1, 2, 3]) for name in ("trials", "successes", "score", "k")}
    data = bk.tally(ARRAY.assign_coords(taken), missing="ignore")
    assert set(data.dataset.coords) & set(taken) == {"score"}
    assert data.dataset["score"].dims == ("category",)

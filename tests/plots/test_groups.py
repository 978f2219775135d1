"""Pictures of questions in groups."""

import matplotlib
import numpy as np
import pytest

import bayesatk as bk

matplotlib.use("agg")


@pytest.fixture(scope="module")
def compared():
    rng = np.random.default_rng(6)
    runs = {name: rng.binomial(1, 0.6, (12, 3)) for name in ("a", "b")}
    data = bk.tally(runs, group=list("xxxxyyyyzzzz"))
    return bk.compare(bk.evaluate(data, "pass@1,2", group="group", rng=1, draws=200))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_groups_are_rows_with_their_means(compared) -> None:
    plot = bk.plots.plot_systems(compared, "pass@1", by="group")
    mean = compared["group_closed_form"]["pass_at_k"].sel(statistic="mean", k=1)
    for system in ("a", "b"):
        for group in ("x", "y", "z"):
            for target in ("questions", "population"):
                place = {"system": system, "group": group, "target": target}
                drawn = plot.get_viz("mean", **place).get_offsets()[0, 0]
                assert drawn == pytest.approx(float(mean.sel(place)))
    whole = plot.get_viz("mean", system="a", group="all groups", target="questions")
    exact = compared["closed_form"]["pass_at_k"].sel(
        statistic="mean", k=1, system="a", target="questions"
    )
    assert whole.get_offsets()[0, 0] == pytest.approx(float(exact))
    systems = bk.plots.plot_systems(compared, "pass@1")
    assert systems.get_viz("mean", system="a", target="new_groups") is not None
    with pytest.raises(ValueError, match="evaluated without"):
        bk.plots.plot_systems(bk.evaluate([[1, 0]], "pass@1", draws=5, rng=1), by="group")

"""The picture of a horizon shows what the tables say."""

import numpy as np
import pytest

import bayesatk as bk

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(3)
    minutes = 2.0 ** rng.uniform(0.0, 6.0, 40)
    runs = {
        name: rng.binomial(1, 1.0 / (1.0 + np.exp(0.9 * np.log2(minutes) - start)), (4, 40)).T
        for name, start in (("slow", 2.0), ("fast", 4.0))
    }
    data = bk.tally(runs, covariates={"minutes": minutes})
    return bk.decide.horizon(
        bk.evaluate(data, "pass@1", covariates=["minutes"], rng=1), "minutes", rng=1
    )


def test_curves_crossings_and_rates(found) -> None:
    plot = bk.plots.plot_horizon(found)
    curves, horizons = (bk.table(found, name) for name in ("horizon_curves", "horizon"))
    for system in ("slow", "fast"):
        rows = curves[curves["system"] == system]
        line = plot.get_viz("line", system=system)
        assert line.get_ydata() == pytest.approx(rows["mean"].to_numpy())
        assert line.get_xdata() == pytest.approx(np.log2(rows["value"]))
        (row,) = horizons[horizons["system"] == system].to_dict("records")
        ends = np.clip([row["ci_lower"], row["ci_upper"]], rows["value"].min(), rows["value"].max())
        assert plot.get_viz("horizon", system=system).get_xdata() == pytest.approx(np.log2(ends))
    assert plot.get_viz("level").get_ydata().tolist() == [0.5, 0.5]
    assert len(bk.table(found, "horizon_observed")) == 16
    text = plot.get_viz("figure")._suptitle.get_text()
    assert "pass@1 against minutes" in text


@pytest.mark.parametrize("backend", ["plotly", "bokeh"])
def test_other_backends(found, backend) -> None:
    pytest.importorskip(backend)
    assert bk.plots.plot_horizon(found, backend=backend).backend == backend


def test_only_a_horizon_is_drawn() -> None:
    fit = bk.evaluate([[1, 0]], "pass@1", rng=1, draws=2)
    with pytest.raises(
        ValueError, match=r"group 'horizon', where a metric.*bayesatk\.decide\.horizon\(fit"
    ):
        bk.plots.plot_horizon(fit)

"""What is drawn is what results hold; labels name it; nothing from outside is parsed or leaks."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import bayesatk as bk

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")

from matplotlib import pyplot  # noqa: E402

from bayesatk import plots  # noqa: E402
from bayesatk.core.pooling.nodes import Nodes  # noqa: E402
from bayesatk.plots.canvas import Backend, shortened  # noqa: E402
from bayesatk.plots.curves import simultaneous_band  # noqa: E402

HOSTILE = [
    "$x_1^",
    "<script>alert(1)</script>",
    "y" * 200,
    "y" * 199 + "z",
    "\u05e9\u05dc\u05d5\u05dd \u202e\u0645\u0631\u062d\u0628\u0627",
    "\U0001f600 $a$ $$\\frac{b}{$ \x07\n",
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    p = rng.beta(0.8, 0.8, 30)
    runs = {
        s: rng.random((30, 4)) < np.clip(p + d, 0, 1)[:, None]
        for s, d in zip("ab", (0, 0.2), strict=True)
    }
    return bk.tally({name: run.astype(int) for name, run in runs.items()})


@pytest.fixture(scope="module")
def fit(data):
    return bk.evaluate(data, "pass@1,2,4,8 g-pass@4:0.25,0.5 bayes", rng=1)


@pytest.fixture(scope="module")
def compared(data):
    unpooled = bk.evaluate(data, "pass@1 bayes", pooling="none", rng=1)
    return bk.compare(unpooled, rope=0.05)


@pytest.fixture(scope="module")
def named():
    """Six systems with names that no one should have."""
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 4, (6, 8))
    return bk.evaluate(
        bk.tally(counts, trials=3, systems=HOSTILE), "pass@1,2", pooling="none", rng=1
    )


def calibrated():
    """A posterior of independent uniform probabilities, which is a Beta distribution."""
    with pm.Model() as model:
        p = pm.Uniform("p", shape=3)
        pm.Binomial("y", 2, p, observed=[0, 0, 0])

    def posterior(data, rng):
        draws = rng.beta(1 + data["y"], 3 - data["y"], (4, 50, 3))
        return {"posterior": xr.Dataset({"p": (("chain", "draw", "question"), draws)})}

    return bk.checks.calibrate(model, posterior, replications=50, rng=1, progress=False)


def every_plot(fit, compared, backend=None):
    """One plot of each kind of a result."""
    verified = bk.verify(fit, fit.drop_nodes("closed_form"))
    gate = bk.decide.gate([[1, 1, 0]] * 9, [[1, 0, 0]] * 9, metric="pass@1", margin=0.1)
    for draw, *arguments in (
        (plots.plot_curve, fit),
        (plots.plot_systems, fit, "pass@4"),
        (plots.plot_difference, compared),
        (plots.plot_ranks, compared),
        (plots.plot_leaderboard, bk.leaderboard(compared)),
        (plots.plot_gate, gate),
        (plots.plot_questions, fit),
        (plots.plot_shrinkage, fit),
        (plots.plot_difficulty, fit),
        (plots.plot_baseline, bk.guessing.random_baseline(fit, 0.25, t=5, rng=1), 0.25),
        (plots.plot_verification, verified),
        (plots.plot_calibration, calibrated()),
    ):
        yield draw(*arguments, backend=backend)


def texts(plot):
    """All text of a matplotlib figure."""
    figure = plot.get_viz("figure")
    figure.canvas.draw()
    return [t.get_text() for t in figure.findobj(matplotlib.text.Text) if t.get_text()]


def title(plot):
    return plot.get_viz("figure").get_suptitle()


# --- bands ---


def test_band_by_hand():
    # Each draw is extreme somewhere but the third and fourth: two of six need only those.
    draws = np.array([[0, 3], [1, 5], [2, 2], [3, 3], [4, 0], [5, 1]], float)
    lower, upper = simultaneous_band(draws, 2 / 6)
    inside = ((draws >= lower) & (draws <= upper)).all(axis=1)
    assert (lower.tolist(), upper.tolist()) == ([2, 2], [3, 3])
    assert inside.tolist() == [False, False, True, True, False, False]
    lower, upper = simultaneous_band(draws, 3 / 6)
    assert (lower.tolist(), upper.tolist()) == ([0, 0], [5, 5])


def test_band_holds_new_curves_and_is_no_narrower_than_intervals():
    rng = np.random.default_rng(0)
    curves = rng.normal(0, 1, (24_000, 6)).cumsum(axis=1)
    lower, upper = simultaneous_band(curves[:4000], 0.9)
    held = ((curves[4000:] >= lower) & (curves[4000:] <= upper)).all(axis=1).mean()
    assert abs(held - 0.9) < 0.015
    pointwise = np.quantile(curves[:4000], [0.05, 0.95], axis=0)
    assert (lower <= pointwise[0]).all()
    assert (upper >= pointwise[1]).all()


@pytest.mark.parametrize(
    ("draws", "probability", "says"),
    [([1.0, 2.0], 0.9, "table"), ([[np.nan]], 0.9, "finite"), ([[1.0]], 1.0, "strictly")],
)
def test_band_refuses(draws, probability, says):
    with pytest.raises(ValueError, match=says):
        simultaneous_band(draws, probability)


# --- text ---


def test_short_labels_are_distinct_and_on_one_line():
    labels = shortened(HOSTILE)
    assert len(set(labels)) == len(HOSTILE)
    assert max(map(len, labels)) <= 33
    assert all(label.isprintable() for label in labels)
    assert shortened(["", " \n"]) == ["(unnamed)", "(unnamed) #2"]


def test_markup_is_text_on_every_backend():
    plotly, bokeh = (Backend.named(name) for name in ("plotly", "bokeh"))
    assert plotly.text("<script>") == "&lt;script&gt;"
    assert bokeh.text("<b>\n", as_html=True) == "&lt;b&gt;<br>"
    assert "$$" not in bokeh.text("$$x$$")
    assert r"\(" not in bokeh.text(r"\(x\)")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Glyph")
def test_hostile_names_are_drawn_as_they_are(named):
    compared = bk.compare(named)
    for plot in (
        plots.plot_curve(named),
        plots.plot_systems(named),
        plots.plot_ranks(compared),
        plots.plot_leaderboard(bk.leaderboard(compared)),
        plots.plot_shrinkage(named),
        plots.plot_baseline(bk.guessing.random_baseline(named, 0.25, t=5, rng=1), 0.25),
    ):
        shown = texts(plot)
        assert any(r"\$x_1^" in text for text in shown)
        drawn = [
            t for t in plot.get_viz("figure").findobj(matplotlib.text.Text) if "x_1" in t.get_text()
        ]
        assert not any(t._preprocess_math(t.get_text())[1] for t in drawn)
        assert max(len(line) for text in shown for line in text.split("\n")) < 130
    texts(plots.plot_difference(compared))


# --- what is drawn ---


def test_curve_draws_means_bands_and_estimates(fit):
    plot = plots.plot_curve(fit)
    closed = fit["closed_form"]["pass_at_k"].sel(system="b")
    for target in ("questions", "population"):
        cells = closed.sel(target=target)
        line = plot.get_viz("line", system="b", target=target)
        np.testing.assert_array_equal(line.get_xdata(), [0, 1, 2, 3])
        np.testing.assert_array_equal(line.get_ydata(), cells.sel(statistic="mean"))
        open_ = plot.get_viz("estimate", system="b", target=target).get_offsets()
        np.testing.assert_array_equal(open_[:, 1], cells.sel(statistic="estimate")[:3])  # 4 trials
        draws = fit["posterior"]["pass_at_k"].sel(system="b", target=target)
        draws = draws.stack(s=("chain", "draw")).transpose("s", "k")
        ends = simultaneous_band(draws.values, 0.95)
        for name, end in zip(("band_lower", "band_upper"), ends, strict=True):
            drawn = plot.get_viz(name, system="b", target=target).get_ydata()
            np.testing.assert_array_equal(drawn, end)
    axes = plot.get_viz("figure").axes
    assert [ax.get_title() for ax in axes] == ["these questions", "questions like these"]
    assert axes[0].get_ylabel() == "pass@k (probability)"
    assert [t.get_text() for t in axes[0].get_xticklabels()] == ["1", "2", "4", "8"]
    assert "probability 95% (simultaneous" in " ".join(title(plot).split())


def test_curve_shows_the_family_free_range_beyond_the_trials(data, fit):
    plot = plots.plot_curve(fit)
    ranges = bk.checks.extrapolation_range(data, "pass@8")
    ranges = ranges.query("target == 'population' and system == 'b'")
    line = plot.get_viz("range", system="b", target="population")
    x, (lower, upper, gap) = line.get_xdata(), line.get_ydata().reshape(-1, 3).T
    assert np.isnan([lower[:3], upper[:3]]).all()  # of 4 trials only k = 8 is beyond
    np.testing.assert_allclose(lower[3:], ranges["lower"][-1:], atol=1e-9)
    np.testing.assert_allclose(upper[3:], ranges["upper"][-1:], atol=1e-9)
    assert np.isnan(gap).all()
    assert np.nanmax(np.abs(x - np.repeat([0, 1, 2, 3], 3))) < 0.05
    assert line.get_linestyle() == ":"
    assert "Dotted vertical lines: range at k beyond the trials" in " ".join(title(plot).split())
    low, high = plot.get_viz("figure").axes[1].get_ylim()
    assert low < ranges["lower"].min()
    assert high > ranges["upper"].max()


def test_curve_within_the_trials_shows_no_range():
    fit = bk.evaluate([[0, 1, 1, 0], [1, 1, 0, 1]], "pass@1,2,4", rng=1, draws=100)
    plot = plots.plot_curve(fit)
    assert "range" not in plot.viz.children
    assert "Dotted" not in title(plot)


def test_curve_of_one_tau_and_one_target(fit):
    plot = plots.plot_curve(fit, "g-pass@:0.5", target="population")
    (axis,) = plot.get_viz("figure").axes
    assert axis.get_ylabel() == "g-pass@k:0.5 (probability)"
    drawn = plot.get_viz("line", system="a").get_ydata()
    stored = fit["closed_form"]["g_pass_at_k"].sel(
        system="a", tau=0.5, target="population", statistic="mean"
    )
    np.testing.assert_array_equal(drawn, stored)


def test_many_systems_spread_over_panels():
    counts = np.random.default_rng(2).integers(0, 4, (20, 6))
    fit = bk.evaluate(bk.tally(counts, trials=3), "pass@1,2", pooling="none", rng=1, draws=100)
    systems = fit["posterior"]["system"].values.tolist()
    figure = plots.plot_curve(fit, bands=systems[3]).get_viz("figure")
    assert len(figure.axes) == 10
    (legend,) = figure.legends
    named = [text.get_text() for text in legend.get_texts()]
    assert sorted(named) == sorted(map(str, systems))
    figure.canvas.draw()
    for part in (figure._suptitle, legend):
        box = part.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert 0 <= box.y0 < box.y1 <= figure.bbox.y1
    assert plots.plot_systems(fit, "pass@1").get_viz("figure").get_figheight() > 6


def test_bands_are_of_those_chosen_and_bars_of_the_others():
    runs = {name: [[1, 0, 1], [int(name > "a"), 1, 1]] * 6 for name in "abc"}
    fit = bk.evaluate(runs, "pass@1,2", pooling="none", rng=1, draws=100)
    for bands, filled in ((["a", "c"], "ac"), ("b", "b")):
        plot = plots.plot_curve(fit, target="questions", bands=bands)
        for name in "abc":
            edge, bar = (plot.get_viz(kind, system=name) for kind in ("band_lower", "bar"))
            assert (edge is not None) == (name in filled)
            assert (bar is not None) == (name not in filled)
    lower, upper, _ = plot.get_viz("bar", system="a").get_ydata().reshape(-1, 3).T
    draws = fit["posterior"]["pass_at_k"].sel(system="a", target="questions")
    draws = draws.stack(s=("chain", "draw")).transpose("s", "k")
    np.testing.assert_array_equal([lower, upper], simultaneous_band(draws.values, 0.95))
    best = plots.plot_curve(fit, target="questions")  # of three: the best
    assert sum(best.get_viz("band_lower", system=name) is not None for name in "abc") == 1


def test_sampled_results_are_drawn_from_their_draws(fit):
    sampled = fit.copy()
    del sampled["closed_form"], sampled["closed_form_quantiles"]
    line = plots.plot_curve(sampled).get_viz("line", system="a", target="questions")
    mean = fit["posterior"]["pass_at_k"].sel(system="a", target="questions").mean(("chain", "draw"))
    np.testing.assert_allclose(line.get_ydata(), mean)
    half = plots.plot_systems(sampled, "bayes").get_viz("half", system="a", target="questions")
    draws = fit["posterior"]["bayes"].sel(system="a", target="questions")
    np.testing.assert_allclose(half.get_xdata(), np.quantile(draws, [0.25, 0.75]))


def test_systems_draws_both_intervals_best_on_top(fit):
    plot = plots.plot_systems(fit, ["pass@4", "bayes"])
    for metric, target, system in (("pass@4", "questions", "a"), ("bayes", "population", "b")):
        variable = fit["closed_form"]["pass_at_k" if metric == "pass@4" else "bayes"]
        where = {"system": system, "target": target} | ({"k": 4} if metric == "pass@4" else {})
        cells = variable.sel(where)
        line = plot.get_viz("interval", metric=metric, system=system, target=target)
        ends = cells.sel(statistic=["ci_lower", "ci_upper"])
        assert line.get_xdata().tolist() == ends.values.tolist()
        levels = fit["closed_form_quantiles"][variable.name].sel(where).sel(quantile=[0.25, 0.75])
        half = plot.get_viz("half", metric=metric, system=system, target=target)
        assert half.get_xdata().tolist() == levels.values.tolist()
    axes = plot.get_viz("figure").axes
    assert [t.get_text() for t in axes[0].get_yticklabels()] == ["a", "b"]  # b is better: higher
    assert [ax.get_xlabel() for ax in axes] == ["pass@4 (probability)", "bayes (mean score)"]
    assert "95% equal-tailed interval" in title(plot)


def test_difference_draws_the_better_first(compared):
    plot = plots.plot_difference(compared, "pass@1", target="questions")
    cells = compared["comparison"]["pass_at_k"].sel(system="b", other="a", k=1, target="questions")
    mean = plot.get_viz("mean").get_offsets()[0, 0]
    assert mean == cells.sel(contrast="mean") > 0
    ends = plot.get_viz("interval").get_xdata().tolist()
    assert ends == cells.sel(contrast=["ci_lower", "ci_upper"]).values.tolist()
    sure = float(cells.sel(contrast="prob_greater"))
    written = plot.get_viz("probability").get_text()
    assert written == ("P > 0.999" if sure >= 0.9995 else f"P = {sure:.3f}")  # known to 0.002
    (axis,) = plot.get_viz("figure").axes
    assert axis.get_yticklabels()[0].get_text() == "b \u2212 a"
    assert axis.get_xlabel() == "difference in pass@1 (probability)"
    assert plot.get_viz("rope").get_xy()[0] == -0.05
    assert "these questions" in title(plot)
    assert "equivalence, within 0.05" in " ".join(title(plot).split())


def test_ranks_write_every_probability(compared):
    plot = plots.plot_ranks(compared, "bayes")
    table = compared["ranks"]["bayes"].sel(target="population")
    for system in "ab":
        for rank in (1, 2):
            value = float(table.sel(system=system, rank=rank))
            text = plot.get_viz("probability", system=system, rank=rank)
            assert text.get_text() == ("0" if value < 0.005 else f"{value:.2f}")


def test_a_leaderboard_has_its_numbers_and_a_line_between_tiers():
    rng = np.random.default_rng(3)
    p = np.concatenate([rng.beta(3, 7, (2, 80)), rng.beta(7, 3, (1, 80))])
    fit = bk.evaluate(bk.tally((rng.binomial(4, p), 4), systems=["a", "b", "c"]), "pass@1", rng=1)
    board = bk.leaderboard(fit)
    plot = plots.plot_leaderboard(board, target="questions")
    rows = bk.table(board, "leaderboard").query("target == 'questions'").set_index("system")
    assert rows["tier"].tolist() == [1, 2, 2]
    heights = {"c": 2.0, rows.index[1]: 1.0, rows.index[2]: 0.0}
    for system, height in heights.items():
        for visual in ("mean", "observed"):
            ((x, y),) = plot.get_viz(visual, system=system).get_offsets()
            assert (x, y) == pytest.approx((rows.loc[system, visual], height))
    assert plot.get_viz("best", system="c").get_text().startswith("P(best) > 0.99")
    assert set(plot.get_viz("tier_0").get_ydata()) == {1.5}


@pytest.mark.parametrize("rule", ["non-inferiority", "superiority"])
def test_a_gate_has_its_threshold_and_the_posterior_on_both_sides(rule):
    rng = np.random.default_rng(3)
    runs = rng.binomial(1, rng.beta(1, 1, (1, 40, 1)), (2, 40, 4))
    gate = bk.decide.gate(
        *runs, bk.decide.GatePolicy("pass@1", margin=0.05, rule=rule, floors={3: 0.2})
    )
    plot, row = plots.plot_gate(gate), bk.table(gate, "gate").iloc[0]
    assert set(plot.get_viz("threshold").get_xdata()) == {row["threshold"]}
    assert plot.get_viz("mean").get_offsets()[0, 0] == pytest.approx(row["mean"])
    assert plot.get_viz("interval").get_xdata().tolist() == [row["ci_lower"], row["ci_upper"]]
    areas = {}
    for side in ("above", "below"):
        (path,) = plot.get_viz(side).get_paths()
        x, y = path.vertices[:-1].T
        areas[side] = 0.5 * abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))
    share = areas["above"] / (areas["above"] + areas["below"])
    assert share == pytest.approx(row["above"], abs=0.03)
    words = title(plot).replace("\n", " ")
    for sentence in bk.table(gate, "gate")["sentence"]:
        assert sentence in words


def test_a_gate_that_leaves_nothing_open_is_drawn():
    gate = bk.decide.gate([[1] * 4] * 5, [[1] * 4] * 5, metric="pass@1", margin=0.1, ci_prob=0.8)
    gate["gate"]["density"][:] = np.nan  # as where all draws are the same
    assert plots.plot_gate(gate).get_viz("mean") is not None


def contrast(one, other):
    """Contrast ratio of two colours, as accessibility guidelines define it."""

    def luminance(rgb):
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
        return np.dot([0.2126, 0.7152, 0.0722], linear)

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_panels_of_costs_have_the_same_axes():
    rng = np.random.default_rng(4)
    data = bk.tally(rng.integers(0, 2, (2, 9, 3)), cost=rng.gamma(2.0, 1.0, (2, 9, 3)))
    fit = bk.evaluate(data, "pass@1,2 cost", difficulty="beta", rng=1)
    plot = plots.plot_cost(fit, "pass@2")
    axes = plot.viz["figure"].item().axes
    assert axes[0].get_xlim() == axes[1].get_xlim()
    assert axes[0].get_ylim() == axes[1].get_ylim()
    rows = bk.table(fit).set_index(["system", "target", "metric"])
    (at,) = plot.get_viz("points", system=1, target="population").get_offsets()
    cost, score = (rows.loc[(1, "population", name)] for name in ("cost", "pass@2"))
    assert at.tolist() == [cost["mean"], score["mean"]]
    drawn = plot.get_viz("cost", system=1, target="population").get_xdata()
    assert drawn.tolist() == [cost["ci_lower"], cost["ci_upper"]]


def test_every_rank_shade_is_readable():
    from bayesatk.plots.intervals import _ink, _shade

    for p in np.linspace(0.005, 1, 200):
        shade, ink = (matplotlib.colors.to_rgb(color(p)) for color in (_shade, _ink))
        assert contrast(shade, ink) > 4.5


def test_shrinkage_is_exact_and_grouped(data, fit):
    with_p = bk.evaluate(data, "pass@1", keep=["p"], draws=50, rng=1)
    for result in (fit, with_p):
        plot = plots.plot_shrinkage(result, "a")
        drawn = np.concatenate(
            [
                marker.get_offsets()
                for marker in plot.viz["questions"]["value"].values.ravel()
                if marker
            ]
        )
        exact = with_p["closed_form"]["p"].sel(system="a", statistic="mean").values
        raw = data.successes.sel(system="a").values / 4
        points = {(r, round(m, 9)) for r, m in zip(raw, exact, strict=True)}
        assert {(r, round(m, 9)) for r, m in drawn} == points
    (axis,) = plot.get_viz("figure").axes
    assert axis.get_ylabel() == "posterior mean of p (probability)"


def test_shrinkage_of_many_questions_is_a_handful_of_markers():
    counts = np.random.default_rng(1).binomial(4, 0.5, (1, 100_000))
    fit = bk.evaluate(bk.tally(counts, trials=4), "pass@1", pooling="none", draws=10, rng=1)
    plot = plots.plot_shrinkage(fit)
    markers = [marker for marker in plot.viz["questions"]["value"].values.ravel() if marker]
    assert sum(len(marker.get_offsets()) for marker in markers) == 5


def test_shrinkage_of_draws(data, fit):
    sampled = fit.copy()
    del sampled["closed_form"]
    with pytest.raises(ValueError, match=r"keep=\['p'\]"):
        plots.plot_shrinkage(sampled)
    with_p = bk.evaluate(data, "pass@1", pooling="none", keep=["p"], draws=50, rng=1)
    del with_p["closed_form"]
    (points, *_) = plots.plot_shrinkage(with_p, "a").viz["questions"]["value"].values.ravel()[-1:]
    rate, mean = points.get_offsets()[0]
    alike = with_p["observed_data"]["successes"].sel(system="a").values == 4 * rate
    draws = with_p["posterior"]["p"].sel(system="a").mean(("chain", "draw")).values
    assert mean == pytest.approx(draws[alike].mean())


def test_difficulty_draws_the_cdf_and_the_rates(data, fit):
    plot = plots.plot_difficulty(fit, ["b"])
    steps = plot.get_viz("observed")
    rates = np.sort(data.successes.sel(system="b").values / 4)
    for x, y in zip(steps.get_xdata(), steps.get_ydata(), strict=True):
        assert y in (pytest.approx((rates <= x).mean()), 0.0)
    line = plot.get_viz("median")
    draws = fit["difficulty"].to_dataset().sel(system="b").stack(s=("chain", "draw"))
    thinned = draws.isel(s=slice(None, None, 4)).transpose("s", ...)
    atoms = np.stack([thinned["never"].values, thinned["always"].values], axis=1)
    drawn = Nodes.of_moments(*(thinned[name].values for name in ("mean", "icc", "share")), atoms)
    np.testing.assert_array_equal(
        line.get_ydata(), np.quantile(drawn.cdf(line.get_xdata()[None]), 0.5, axis=0)
    )
    assert plot.get_viz("figure").axes[0].get_ylabel() == "share of questions with p or less"


def test_baseline_marks_accuracies_and_p_values(fit):
    baseline = bk.guessing.random_baseline(fit, 0.25, t=5, rng=1)
    plot = plots.plot_baseline(baseline, 0.25)
    group = baseline["random_baseline"].to_dataset()
    for system in "ab":
        line = plot.get_viz("observed", system=system)
        assert line.get_xdata()[0] == group["observed_accuracy"].sel(system=system)
    assert plot.get_viz("expected").get_xdata()[0] == group["expected_best"][0]
    labels = [t.get_text() for t in plot.get_viz("figure").legends[0].get_texts()]
    assert labels[0].startswith("b: ")
    assert all(", p " in label for label in labels)
    law = bk.guessing.MaxOrderStatisticPoissonBinomial(120, 0.25).at(5)
    heights = plot.get_viz("pmf").get_paths()[0].vertices[:, 1].max()
    assert heights == pytest.approx(law.pmf(np.arange(121)).max())
    with pytest.raises(ValueError, match="guess must be what random_baseline was given"):
        plots.plot_baseline(baseline, 0.3)


def test_verification_draws_scores_and_rings_disagreements(fit):
    moved = fit.copy(deep=True)
    moved["posterior"]["bayes"].loc[{"system": "a", "target": "questions"}] += 0.02
    verified = bk.verify(fit, moved.drop_nodes("closed_form"))
    plot = plots.plot_verification(verified)
    for quantity in plot.viz["z"]["quantity"].values:
        row = verified.table.loc[quantity]
        for test, column in (("mean", "z_mean"), ("sd", "z_sd"), ("distribution", "z_pit")):
            drawn = plot.get_viz("z", test=test, quantity=quantity).get_offsets()[0, 0]
            assert drawn == pytest.approx(row[column], nan_ok=True)
    labels = [text.get_text() for text in plot.get_viz("figure").axes[0].get_yticklabels()]
    assert "bayes, a, these" in labels
    assert "bayes, b - a, these" in labels
    rings = plot.viz["disagreement"]["value"]
    ringed = [q for q in rings["quantity"].values if rings.sel(quantity=q).item()]
    assert sorted(ringed) == verified.table.index[verified.table["verdict"] == "disagree"].tolist()
    within = plot.get_viz("within")
    assert -within.get_xy()[0] == pytest.approx(verified.table.attrs["threshold"], rel=1e-6)
    assert "2 disagree" in title(plot)  # the mean, and the difference of the systems


def test_verification_shows_the_worst_of_many(fit):
    table = bk.verify(fit, fit.drop_nodes("closed_form")).table
    import pandas as pd

    many = pd.concat([table] * 3, ignore_index=True)
    many.loc[7, "z_mean"] = np.inf
    plot = plots.plot_verification(bk.checks.Verification(many, 0.01))
    assert plot.viz["z"].sizes["quantity"] == 40
    assert 7 in plot.viz["z"]["quantity"].values
    assert "40 furthest off" in title(plot)


@pytest.mark.long
def test_calibration_has_a_panel_per_quantity():
    calibration = calibrated()
    plot = plots.plot_calibration(calibration)
    assert set(plot.viz["plot"].data_vars) == set(calibration.table.index)
    assert "50 data sets" in title(plot)


# --- refusals ---


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda fit, pooled: plots.plot_curve(fit, target="people"), "target must be one of"),
        (lambda fit, pooled: plots.plot_curve(fit, bands="d"), "system must be among the labels"),
        (lambda fit, pooled: plots.plot_curve(fit, backend="gnuplot"),
         r"backend must be .matplotlib., .plotly. or .bokeh."),
        (lambda fit, pooled: plots.plot_difficulty(pooled), "pooling='partial'"),
        (lambda fit, pooled: plots.plot_shrinkage(fit, "nobody"), "system must be among"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused_by_name(fit, compared, draw, words):
    with pytest.raises(ValueError, match=words):
        draw(fit, compared)


def test_what_is_missing_or_no_result_is_said(monkeypatch):
    with pytest.raises(TypeError, match="fit must be a DataTree"):
        plots.plot_curve(xr.Dataset())
    monkeypatch.setattr(
        "bayesatk.plots.canvas.import_module",
        lambda name: (_ for _ in ()).throw(ImportError("No module named 'matplotlib'")),
    )
    with pytest.raises(ImportError, match="pip install matplotlib"):
        Backend.named("matplotlib")


# --- backends ---


@pytest.mark.long
def test_all_plots_leave_the_settings_of_matplotlib_alone(fit, compared, tmp_path):
    before = dict(matplotlib.rcParams)
    for i, plot in enumerate(every_plot(fit, compared)):
        plot.savefig(tmp_path / f"{i}.png")
        assert (tmp_path / f"{i}.png").stat().st_size > 5000
        pyplot.close("all")
    assert dict(matplotlib.rcParams) == before


def test_a_figure_stays_open_for_pyplot(fit, tmp_path):
    """``plt.savefig`` after a plot writes that plot, as after one of ArviZ."""
    plot = plots.plot_curve(fit, "pass@")
    assert pyplot.gcf() is plot.get_viz("figure")
    pyplot.savefig(tmp_path / "last.png")
    plot.savefig(tmp_path / "plot.png")
    last, of_plot = (pyplot.imread(tmp_path / f"{name}.png") for name in ("last", "plot"))
    assert last[..., :3].std() > 0.05
    assert of_plot[..., :3].std() > 0.05


@pytest.mark.long
@pytest.mark.parametrize("backend", ["plotly", "bokeh"])
def test_all_plots_on_other_backends(fit, compared, backend, tmp_path):
    pytest.importorskip(backend)
    for i, plot in enumerate(every_plot(fit, compared, backend)):
        assert plot.backend == backend
        plot.savefig(tmp_path / f"{i}.html")
        assert (tmp_path / f"{i}.html").stat().st_size > 5000


def test_a_curve_may_be_named_by_one_of_its_points(fit):
    named = plots.plot_curve(fit, "pass@4").get_viz("line", system="a", target="questions")
    line = plots.plot_curve(fit, "pass@").get_viz("line", system="a", target="questions")
    assert named.get_xydata().tolist() == line.get_xydata().tolist()


def test_questions_are_drawn_hardest_first_and_thinned_where_they_are_many():
    rng = np.random.default_rng(8)
    p = np.sort(rng.beta(0.8, 0.8, 400))[::-1]
    counts = np.stack([rng.binomial(8, p), rng.binomial(8, np.minimum(p + 0.1, 1))])
    counts[:, 0] = 8, 0
    fit = bk.evaluate(
        bk.tally(counts, trials=8, systems=["weak", "strong"]),
        "pass@1",
        pooling="none",
        draws=8,
        rng=1,
    )
    rows, plot = bk.checks.question_table(fit), plots.plot_questions(fit)
    drawn = plot.get_viz("mean", system="strong").get_offsets()
    of_strong = rows[rows["system"] == "strong"]
    assert 300 <= len(drawn) <= 300 + of_strong["suspicious"].sum()
    assert (np.diff(drawn[:, 0]) > 0).all()
    assert set(np.round(drawn[:, 1], 9)) <= set(np.round(of_strong["mean"], 9))
    odd = plot.get_viz("suspicious", system="strong").get_offsets()
    assert len(odd) == of_strong["suspicious"].sum() >= 1
    assert "of 400 questions" in " ".join(title(plot).split())
    first = rows["question"][rows["suspicious"]].iloc[0]
    assert any(text.startswith(f"strong (diamonds: {first}") for text in texts(plot))


def test_plots_put_the_lower_first_where_lower_is_better():
    seconds = {"slow": [[9, 7], [5, 9], [9, 9]] * 3, "fast": [[5, 3], [3, 3], [5, 7]] * 3}
    data = bk.tally(seconds, scores="numbers", better="lower")
    fit = bk.compare(bk.evaluate(data, "bayes min@2", pooling="none", draws=50, rng=1))
    height = [
        float(
            plots.plot_systems(fit, "bayes")
            .get_viz("mean", system=name, target="questions")
            .get_offsets()[0, 1]
        )
        for name in ("slow", "fast")
    ]
    assert height[0] < height[1]  # the best on top
    pair = plots.plot_difference(fit, "bayes", target="questions").get_viz("mean").get_offsets()
    assert pair[0, 0] < 0.0  # fast less slow
    questions = plots.plot_questions(fit).get_viz("mean", system="fast").get_offsets()
    assert questions[0, 1] > questions[-1, 1]  # the hardest question takes longest

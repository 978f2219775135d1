"""Claims of a file: every probability is that of a table, and what data do not know is refused."""

import numpy as np
import pytest
from typer.testing import CliRunner

import bayesatk as bk
from bayesatk.cli.app import app
from bayesatk.io.claims import KINDS, OF_COSTS, Claim, asked_of_costs, read_claims

SYSTEMS = ["a", "b", "c"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    p = rng.beta(1.5, 1.0, 14)
    runs = {name: rng.binomial(1, p[:, None] ** power, (14, 4))
            for name, power in zip(SYSTEMS, (0.5, 0.8, 2.5), strict=True)}  # fmt: skip
    cost = {name: rng.gamma(9, price / 9, (14, 4))
            for name, price in zip(SYSTEMS, (3.0, 1.0, 1.5), strict=True)}  # fmt: skip
    return bk.tally(runs, cost=cost, cost_unit="USD")


@pytest.fixture(scope="module")
def fit(data):
    return bk.evaluate(data, "pass@1,2", pooling="none", draws=50, rng=1)


@pytest.fixture(scope="module")
def costs(data):
    return bk.costs.evaluate_cost(data, [1, 2], [0.5, 2.0], draws=100, rng=1)


def probability(claim: dict, *results) -> float:
    return float(bk.table(bk.decide.check_claims([claim], *results), "claims")["probability"][0])


@pytest.mark.long
@pytest.mark.parametrize(("metric", "target"), [("pass@1", "population"), ("pass@2", "questions")])
def test_ranks_and_pairs_are_those_of_the_tables(fit, metric, target) -> None:
    shared = {"metric": metric, "target": target}
    board = bk.leaderboard(fit)
    rows = bk.table(board, "leaderboard")
    rows = rows[(rows["metric"] == metric) & (rows["target"] == target)].set_index("system")
    ranks = bk.compare(fit)["ranks"]["pass_at_k"].sel(k=int(metric[-1]), target=target)
    for name in SYSTEMS:
        about = {"system": name, **shared}
        best = probability({"says": "best", **about}, fit)
        assert best == pytest.approx(rows.loc[name, "prob_best"], abs=1e-12)
        top = probability({"says": "in the top", "top": 2, **about}, board)
        assert top == pytest.approx(float(ranks.sel(system=name)[:2].sum()), abs=1e-12)
    for rope in (0.0, 0.1):
        compared = bk.compare(fit, rope=rope)
        table = bk.comparison_table(compared, of="a", against="b")
        row = table[(table["metric"] == metric) & (table["target"] == target)].iloc[0]
        assert row["system"] == "a"
        pair = {"system": "a", "other": "b", **shared}
        ahead = probability({"says": "ahead of", "by": rope, **pair}, fit)
        assert ahead == row["prob_above_rope" if rope else "prob_greater"]
        turned = probability({"says": "ahead of", **pair, "system": "b", "other": "a"}, compared)
        assert turned == pytest.approx(
            1.0 - probability({"says": "ahead of", **pair}, compared), abs=1e-12
        )
        if rope:
            within = probability({"says": "equivalent to", "within": rope, **pair}, fit)
            assert within == row["prob_in_rope"]


@pytest.mark.parametrize("target", ["questions", "population"])
def test_claims_about_cost_are_those_of_the_draws_and_tables(costs, target) -> None:
    front = bk.costs.pareto(costs, 2)
    front = front[front["target"] == target].set_index("system")
    draws = costs["posterior"].dataset.sel(target=target)
    for name in SYSTEMS:
        about = {"system": name, "target": target}
        pareto = probability({"says": "on the Pareto front", "k": 2, **about}, None, costs)
        assert pareto == front.loc[name, "prob_pareto"]
        solves = probability(
            {"says": "solves more than", "share": 0.5, "spend": 2.0, **about}, None, costs
        )
        solved = draws["coverage_at_budget"].sel(system=name, budget=2.0).values
        assert solves == (solved > 0.5).mean()
    pair = {"system": "b", "other": "a", "target": target}
    both = probability({"says": "not worse and cheaper than", "by": 0.1, **pair}, None, costs)
    table = bk.costs.compare_cost(costs)
    cheaper = table[(table["quantity"] == "cost_to_success") & (table["target"] == target)]
    cheaper = cheaper[(cheaper["k"] == 1) & (cheaper["system"] == "a") & (cheaper["other"] == "b")]
    gap = draws["pass_at_k"].sel(k=1)
    gap = (gap.sel(system="b") - gap.sel(system="a")).values
    cost = draws["cost_to_success"].sel(k=1)
    less = (cost.sel(system="b") < cost.sel(system="a")).values
    assert both == ((gap >= -0.1) & less).mean()
    # At most the probability of either, and at least their sum less one.
    chance = float(cheaper["prob_greater"].iloc[0])
    assert both <= min(chance, (gap >= -0.1).mean()) + 1e-12
    assert both >= chance + (gap >= -0.1).mean() - 1.0 - 1e-12


def test_verdicts_and_exit_code(fit) -> None:
    pair = {"says": "ahead of", "system": "a", "other": "c", "target": "questions"}
    turned = pair | {"system": "c", "other": "a"}
    checked = bk.decide.check_claims([pair, turned], fit)
    rows = bk.table(checked, "claims")
    assert rows["verdict"].tolist() == ["holds", "refuted"]
    assert checked["claims"].attrs["exit_code"] == 1
    first, second = str(rows).splitlines()
    assert first.startswith("HOLDS: a is ahead of c in pass@1 on these questions with probability")
    assert second.startswith("REFUTED: c is ahead of a")
    sure = bk.decide.check_claims([pair | {"prob": 0.99999999}], fit)
    assert bk.table(sure, "claims")["verdict"][0] in ("holds", "open")
    between = {"says": "ahead of", "system": "a", "other": "b", "prob": 0.9999}
    checked = bk.decide.check_claims([pair, between], fit)
    assert bk.table(checked, "claims")["verdict"].tolist() == ["holds", "open"]
    assert checked["claims"].attrs["exit_code"] == 3


A = {"system": "a"}


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ({"says": "nicest", **A}, "claim 1: says must be one of 'best', .*; got 'nicest'"),
        ({"says": "best"}, r"claim 1 \('best'\) must have keys .*; it lacks 'system'"),
        ({"says": "best", **A, "other": "b"}, "it has 'other'"),
        (
            {"says": "best", "system": "z"},
            "claim 1 .* system must be one of 'a', 'b', 'c'; got 'z'",
        ),
        ({"says": "best", **A, "metric": "pass^9"}, "metric must be one of pass@1, pass@2"),
        ({"says": "best", **A, "target": "new_groups"}, "target must be one of questions"),
        ({"says": "best", **A, "target": "all"}, "target must be one of questions.*got 'all'"),
        ({"says": "best", **A, "prob": 0.3}, "claim 1: prob must lie strictly between 0.5 and 1"),
        ({"says": "in the top", **A, "top": 3}, "top must be less than the 3 systems; got 3"),
        ({"says": "in the top", **A, "top": 0}, "claim 1: top must be an integer >= 1; got 0"),
        ({"says": "ahead of", **A, "other": "a"}, "other must be another system; got 'a'"),
        ({"says": "ahead of", **A, "other": "b", "by": -1.0}, "by must be 0 or more; got -1.0"),
        ({"says": "equivalent to", **A, "other": "b", "within": 0.0}, "within must be above 0"),
        ({"says": "on the Pareto front", **A}, "needs bayesatk.costs.evaluate_cost"),
    ],
)
def test_what_the_data_do_not_know_is_refused_by_name(fit, claim, words) -> None:
    with pytest.raises(ValueError, match=words):
        bk.decide.check_claims([claim], fit)


def test_costs_that_were_not_evaluated_are_refused(costs, fit) -> None:
    claim = {"says": "solves more than", **A, "share": 0.5, "spend": 9.0}
    with pytest.raises(ValueError, match=r"spend must be one of \[0.5, 2.0\].*spend=\[9\]"):
        bk.decide.check_claims([claim], None, costs)
    with pytest.raises(ValueError, match=r"k must be one of \[1, 2\], as evaluated; got 7"):
        bk.decide.check_claims([{"says": "on the Pareto front", **A, "k": 7}], None, costs)
    with pytest.raises(ValueError, match=r"needs bayesatk\.evaluate"):
        bk.decide.check_claims([{"says": "best", **A}], None, costs)
    with pytest.raises(ValueError, match="a result must be given"):
        bk.decide.check_claims([{"says": "best", **A}])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("= 3", "claims must be a TOML file"),
        ("prob = 0.9\n", "claims must have a table for each claim; got None"),
        ('system = "a"\n[[claim]]\nsays = "best"\n', "has 'system'. Put it into a table"),
    ],
)
def test_files_that_are_none(tmp_path, text, words) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        read_claims(path)


def test_shared_keys_and_what_costs_are_asked(tmp_path) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(
        'metric = "pass@2"\ntarget = "questions"\n[[claim]]\nsays = "best"\nsystem = "a"\n'
        '[[claim]]\nsays = "solves more than"\nsystem = "b"\nshare = 0.5\nspend = 2\nprob = 0.8\n'
    )
    first, second = read_claims(path)
    assert (first.metric, first.target, first.prob) == ("pass@2", "questions", 0.95)
    assert (second.metric, second.target, second.prob) == (None, "questions", 0.8)
    assert asked_of_costs([first, second]) == ([1], [2])
    assert asked_of_costs([Claim("on the Pareto front", "a", k=3)]) == ([3], [])
    assert set(OF_COSTS) < set(KINDS)


def test_the_command_line(data, tmp_path) -> None:
    counts = data.successes.to_dataframe("right").reset_index()
    lines = ["system,question,trial,outcome"]
    for row in counts.itertuples():
        lines += [f"{row.system},{row.question},{t},{int(t < row.right)}" for t in range(4)]
    (tmp_path / "runs.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "claims.toml").write_text(
        '[[claim]]\nsays = "ahead of"\nsystem = "a"\nother = "c"\ntarget = "questions"\n'
    )
    run = ["claims", str(tmp_path / "claims.toml"), str(tmp_path / "runs.csv")]
    done = CliRunner().invoke(app, [*run, "-m", "pass@1", "--pooling", "none", "-q"])
    assert done.exit_code == 0, done.output
    assert "HOLDS: a is ahead of c in pass@1" in done.stdout
    assert done.stdout.rstrip().splitlines()[-1].startswith("HOLDS")  # below the tables
    assert len(done.stdout.splitlines()) > 6
    (tmp_path / "claims.toml").write_text('[[claim]]\nsays = "on the Pareto front"\nsystem = "a"\n')
    done = CliRunner().invoke(app, run)
    assert done.exit_code == 2
    assert "needs costs: name their column with --cost" in done.stderr
    done = CliRunner().invoke(app, run[:2])
    assert "give the claims and the data" in done.stderr

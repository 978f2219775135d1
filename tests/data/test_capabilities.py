"""What cannot be combined is what the table says, with a message made from it."""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bayesatk as bk
from bayesatk.data.capabilities import FEATURES, REFUSED, reason, refused_pairs
from bayesatk.posterior import model

COMBINED = (
    "group", "covariates", "judge", "weight", "prior trials", "pooling none", "pooling complete",
    "categories", "votes", "families", "bootstrap",
)  # fmt: skip
RNG = np.random.default_rng(3)
QUESTIONS = 12
MARKS = {name: RNG.integers(0, 2, (QUESTIONS, 4)) for name in ("a", "b")}
GRADES = {name: RNG.integers(0, 3, (QUESTIONS, 4)) for name in ("a", "b")}
SCORES = {0: 0.0, 1: 0.5, 2: 1.0}
JUDGE = bk.JudgeError(tp=90, p=100, fp=3, n=100)
OF_DATA: dict[str, dict[str, Any]] = {
    "group": {"group": list("abc") * 4},
    "weight": {"weight": list(range(1, QUESTIONS + 1))},
    "covariates": {"covariates": {"size": list(range(QUESTIONS))}},
}
OF_EVALUATE: dict[str, dict[str, Any]] = {
    "group": {"group": "group"},
    "covariates": {"covariates": ["size"]},
    "judge": {"judge": JUDGE},
    "pooling none": {"pooling": "none"},
    "pooling complete": {"pooling": "complete"},
    "families": {"difficulty": "averaged"},
    "bootstrap": {"population": "bootstrap"},
}
OPERATIONS: dict[str, Callable[[Any], object]] = {
    "table": bk.table,
    "compare": bk.compare,
    "exact_loo": bk.checks.exact_loo,
    "leaderboard": lambda fit: bk.leaderboard(fit),
    "criticise": lambda fit: bk.checks.criticise(fit, rng=1),
    "plan": lambda fit: bk.plan(
        _one(fit), metric_of(fit).replace("plurality", "pass"), width=0.4, trials=[2]
    ),
    "question_table": bk.checks.question_table,
    "noise_floor": bk.decide.noise_floor,
    "e_value": bk.decide.e_value,
    "claim": lambda fit: bk.claim(fit, system="a"),
    "gate": lambda fit: bk.decide.gate(fit, "a", metric=metric_of(fit), margin=0.1),
    "extrapolation_range": lambda fit: bk.checks.extrapolation_range(fit, "pass@8"),
    "evidence": bk.checks.log_evidence,
    "random_baseline": lambda fit: bk.guessing.random_baseline(fit, 0.25, rng=1),
    "tail_exponent": bk.checks.tail_exponent,
    "chance": lambda fit: bk.checks.log_bayes_factor_chance(fit, 0.25),
}


@pytest.fixture(scope="module", autouse=True)
def few_points() -> Iterator[None]:
    """No number is looked at here, only whether there is one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "_MAX_LOCATED", (200, 200))
        yield


def study_with(*names: str, systems: tuple[str, ...] = ("a", "b")) -> dict[str, Any]:
    """Return the arguments of `evaluate` for a study with these capabilities."""
    scored = {"scores": SCORES} if "categories" in names else {}
    marks = {name: (GRADES if scored else MARKS)[name] for name in systems}
    columns = {key: value for name in names for key, value in OF_DATA.get(name, {}).items()}
    options = {key: value for name in names for key, value in OF_EVALUATE.get(name, {}).items()}
    if "votes" in names:
        answers = {name: np.where(marks[name] == 1, "x", "y").tolist() for name in systems}
        data = bk.tally(None, answers=answers, reference=["x"] * QUESTIONS, **columns)
    else:
        data = bk.tally(marks, **scored, **columns)
    earlier = "prior trials" in names
    if earlier:
        options["prior_trials"] = bk.tally(marks, **scored)
    of_votes = "votes" in names and "categories" not in names
    metrics = "plurality@1" if of_votes else "bayes"
    if earlier and not {"categories", "votes"} & set(names):
        metrics = "pass@1"  # of 'bayes' alone they are scored categories
    if names == ("votes",):
        options["pooling"] = "none"
    return {"data": data, "metrics": metrics, "rng": 1, "draws": 20, **options}


def metric_of(fit: Any) -> str:
    """Return the label of its first metric."""
    return bk.Result.of(fit).metrics[0].label


@cache
def fit_with(name: str, systems: tuple[str, ...] = ("a", "b")) -> Any:
    """Return a result with one capability, or none."""
    return bk.evaluate(**study_with(name, systems=systems))


def _one(fit: Any) -> Any:
    """Return the same of one system: plans of groups and labels take no more."""
    names = [name for name in (*COMBINED, "plain") if fit_with(name) is fit]
    return fit_with(names[0], ("a",))


def possible(pair: tuple[str, str]) -> bool:
    """Return whether two capabilities can be asked for at once at all."""
    return pair not in {("pooling none", "pooling complete"), ("categories", "votes")}


@pytest.mark.parametrize("name", COMBINED)
def test_what_is_alone_is_evaluated_and_declared(name) -> None:
    fit = bk.Result.of(fit_with(name))
    assert name in fit.study.capabilities
    assert fit.study.capabilities <= {
        name,
        "pooling partial",
        "pooling none",
        "pooling complete",
        "families",
        "success metrics",
        "law",
        "bootstrap",
    }


PAIRS = [
    pytest.param(pair, marks=[] if reason(*pair) else pytest.mark.long, id=" x ".join(pair))
    for pair in filter(possible, combinations(COMBINED, 2))
]


@pytest.mark.parametrize("pair", PAIRS)
def test_a_pair_is_refused_where_the_table_says_so(pair) -> None:
    study = study_with(*pair)
    if reason(*pair) is None:
        assert set(pair) <= bk.Result.of(bk.evaluate(**study)).study.capabilities
        return
    with pytest.raises(ValueError, match="must be left out with") as refusal:
        bk.evaluate(**study)
    for name in pair:
        assert str(FEATURES[name].argument) in str(refusal.value)
        assert "".join(map(str, FEATURES[name].without)) in str(refusal.value)


@pytest.mark.parametrize("name", COMBINED)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_is_refused_where_the_table_says_so(name, operation) -> None:
    fit = fit_with(name)
    held = bk.Result.of(fit).study.capabilities
    if any(reason(capability, operation) for capability in held):
        with pytest.raises(ValueError, match="must be without"):
            OPERATIONS[operation](fit)
    else:
        assert OPERATIONS[operation](fit) is not None


def test_no_pair_is_refused_twice() -> None:
    pairs = [frozenset(pair) for pair in REFUSED]
    assert len(set(pairs)) == len(pairs)


def test_the_page_of_limits_shows_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "limits.md"
    assert "refused_pairs()" in page.read_text()
    assert len(refused_pairs()) == len(REFUSED)

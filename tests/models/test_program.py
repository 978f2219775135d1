"""The PyMC model of every combination, against sums and integrals written here."""

import numpy as np
import pymc as pm
import pytest
from scipy.special import betaln, expit, gammaln, logit, roots_jacobi, softmax

import bayesatk as bk
from bayesatk.core.pooling.levels import shape_functions
from bayesatk.data.study import Study, read_study
from bayesatk.models.program import build_program

QUESTIONS, GROUPS, WEIGHT = 8, 3, 0.5
RNG = np.random.default_rng(5)
X = RNG.normal(size=QUESTIONS)
SECOND = np.array([0.0, 1.0] * (QUESTIONS // 2))
CODE = np.arange(QUESTIONS) % GROUPS
TRIALS = RNG.integers(1, 5, (2, QUESTIONS))
RIGHT = RNG.binomial(TRIALS, 0.6)
BEFORE_TRIALS = RNG.integers(1, 4, (2, QUESTIONS))
BEFORE = RNG.binomial(BEFORE_TRIALS, 0.6)
ONE, OTHER = bk.JudgeError(50, 60, 4, 60), bk.JudgeError(45, 50, 6, 50)
PRIOR = bk.priors.HyperPrior(
    mean=(1.5, 2.0), icc=(1.2, 3.0), atoms=(1.0, 2.0, 6.0), share=(3.0, 1.5), slope_sd=2.0,
    group_sd=0.7,
)  # fmt: skip
STRUCTURES = [
    {}, {"group": "group"}, {"covariates": ["x", "second"]},
    {"group": "group", "covariates": ["x", "second"]},
]  # fmt: skip


def asked(metric: str = "pass@1", data: object = None, **options) -> Study:
    plain = {
        "pooling": "partial",
        "prior": None,
        "success": None,
        "prior_trials": None,
        "prior_weight": 1.0,
        "answer_prior": None,
        "ci_prob": 0.95,
        "keep": (),
        "group": False,
    }
    return read_study(marks() if data is None else data, metric, **(plain | options))


def marks() -> bk.Outcomes:
    return bk.tally(
        RIGHT,
        trials=TRIALS,
        systems=["a", "b"],
        group=CODE.tolist(),
        covariates={"x": X.tolist(), "second": SECOND.tolist()},
    )


def before() -> bk.Outcomes:
    return bk.tally(BEFORE, trials=BEFORE_TRIALS, systems=["a", "b"])


def evaluated(model: pm.Model, seed: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Free variables at a random point, and log densities: potentials, observed, priors."""
    rng = np.random.default_rng(seed)
    point = {
        name: value + 0.6 * rng.normal(size=value.shape)
        for name, value in model.initial_point().items()
    }
    logs = model.logp(vars=[*model.free_RVs, *model.observed_RVs], sum=False)
    outputs = model.replace_rvs_by_values([*model.free_RVs, *model.potentials])
    inputs = model.value_vars
    function = model.compile_fn(
        [*outputs, *logs], inputs=inputs, mode="FAST_COMPILE", on_unused_input="ignore"
    )
    names = [one.name for one in (*model.free_RVs, *model.potentials)]
    names += [f"log {one.name}" for one in (*model.free_RVs, *model.observed_RVs)]
    values = dict(zip(names, function(point), strict=True))
    free = {one.name: values.pop(one.name) for one in model.free_RVs}
    return free, values


def offsets(free: dict[str, np.ndarray], system: int) -> np.ndarray:
    total = np.zeros(QUESTIONS)
    if "slopes" in free:
        columns = np.column_stack([X, SECOND])
        standard = (columns - columns.mean(axis=0)) / columns.std(axis=0)
        left, _, _ = np.linalg.svd(standard, full_matrices=False)
        basis = left * np.sqrt(QUESTIONS)
        total += basis @ free["slopes"][system]
    if "group_effect" in free:
        total += free["group_sd"][system] * free["group_effect"][system, CODE]
    return total


def law(free: dict[str, np.ndarray], system: int, offset: float):
    """Shares, Beta parameters and atoms of one question."""
    mean, icc = np.atleast_1d(free["mean_p"][system]), np.atleast_1d(free["icc"][system])
    total, m = (1.0 - icc) / icc, expit(logit(mean) + offset)
    share, atoms = np.ones(1), np.zeros(2)
    if "share" in free:
        share = np.array([free["share"][system], 1.0 - free["share"][system]])
    if "atoms" in free:
        share, atoms = free["atoms"][system][2:], free["atoms"][system][:2]
    return share, m * total, (1.0 - m) * total, atoms


def log_chance(free, system: int, offset: float, right: float, wrong: float, rates) -> float:
    """Log probability of trials in their order, by an integral for every Beta and the atoms."""
    share, alpha, beta, atoms = law(free, system, offset)
    s, f = (1.0, 0.0) if rates is None else rates
    total = atoms[0] * f**right * (1.0 - f) ** wrong + atoms[1] * s**right * (1.0 - s) ** wrong
    for w, a, b in zip(share, alpha, beta, strict=True):
        if rates is None:
            total += w * np.exp(betaln(a + right, b + wrong) - betaln(a, b))
            continue
        nodes, weights = roots_jacobi(100, b - 1.0, a - 1.0)
        marked = f + (s - f) * 0.5 * (nodes + 1.0)
        total += w * weights @ (marked**right * (1.0 - marked) ** wrong) / weights.sum()
    return float(np.log(total))


def log_choose(n, k):
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def rates_of(free, judge, system: int):
    if judge is None:
        return None
    return free["sensitivity"][system], free["false_positive_rate"][system]


@pytest.mark.parametrize(
    ("structure", "judge", "earlier", "family"),
    [
        ({}, None, 0.0, "beta"),
        ({}, None, WEIGHT, "inflated"),
        ({}, ONE, 0.0, "mixture"),
        ({}, {"a": ONE, "b": OTHER}, 0.0, "beta"),
        (STRUCTURES[1], None, 1.0, "mixture"),
        (STRUCTURES[1], ONE, 0.0, "inflated"),
        (STRUCTURES[2], None, 0.0, "inflated"),
        (STRUCTURES[2], ONE, 0.0, "beta"),
        (STRUCTURES[3], None, WEIGHT, "beta"),
        (STRUCTURES[3], {"a": ONE, "b": OTHER}, 0.0, "mixture"),
    ],
)
def test_the_marginal_likelihood_is_that_of_the_documentation(
    structure, judge, earlier, family
) -> None:
    options = structure | {"judge": judge, "difficulty": family, "prior": PRIOR}
    if earlier:
        options |= {"prior_trials": before(), "prior_weight": earlier}
    model = build_program(asked(**options), family)
    free, values = evaluated(model, 1)
    expected = 0.0
    for system in range(2):
        delta = offsets(free, system)
        right = RIGHT[system] + earlier * BEFORE[system]
        wrong = TRIALS[system] + earlier * BEFORE_TRIALS[system] - right
        rates = rates_of(free, judge, system)
        expected += sum(
            log_chance(free, system, delta[q], right[q], wrong[q], rates) for q in range(QUESTIONS)
        )
    expected += log_choose(TRIALS, RIGHT).sum()
    found = values["log successes"].sum() + np.sum(values.get("prior_trials", 0.0))
    assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("structure", "earlier"), list(zip(STRUCTURES, [0.0, WEIGHT, WEIGHT, 0.0], strict=True))
)
def test_categories_have_tilted_means(structure, earlier) -> None:
    counts = np.random.default_rng(2).integers(0, 3, (2, QUESTIONS, 4))
    old = np.random.default_rng(3).integers(0, 3, (2, QUESTIONS, 2))
    scores = {0: 0.0, 1: 0.3, 2: 1.5}
    columns = {"x": X.tolist(), "second": SECOND.tolist()}
    data = bk.tally(counts, scores=scores, group=CODE.tolist(), covariates=columns)
    options = structure | {"prior": bk.priors.DirichletHyperPrior()}
    if earlier:
        options |= {"prior_trials": bk.tally(old, scores=scores), "prior_weight": earlier}
    free, values = evaluated(build_program(asked("bayes", data, **options)), 3)
    expected = 0.0
    for system in range(2):
        icc = free["icc"][system]
        for q, offset in enumerate(offsets(free, system)):
            mean = softmax(np.log(free["mean_p"][system]) + offset * np.array([0.0, 0.2, 1.0]))
            alpha = mean * (1.0 - icc) / icc
            seen = np.bincount(counts[system, q], minlength=3)
            seen = seen + earlier * np.bincount(old[system, q], minlength=3)
            expected += (gammaln(alpha + seen) - gammaln(alpha)).sum()
            expected += gammaln(alpha.sum()) - gammaln(alpha.sum() + seen.sum())
            expected += gammaln(5) - gammaln(np.bincount(counts[system, q], minlength=3) + 1).sum()
    assert values["log count"].sum() + np.sum(values.get("prior_trials", 0.0)) == pytest.approx(
        expected, abs=1e-8
    )


@pytest.mark.parametrize(
    ("structure", "family"),
    list(zip(STRUCTURES, ["beta", "inflated", "mixture", "beta"], strict=True)),
)
def test_levels_are_tilts_of_a_base_with_the_mean_p(structure, family) -> None:
    """By an integral over p for every Beta; tilts are found by halving intervals."""
    counts = np.random.default_rng(2).integers(0, 3, (2, QUESTIONS, 4))
    score, function = np.array([0.0, 0.2, 1.0]), shape_functions((0.0, 0.3, 1.5))[0]
    columns = {"x": X.tolist(), "second": SECOND.tolist()}
    data = bk.tally(
        counts, scores={0: 0.0, 1: 0.3, 2: 1.5}, group=CODE.tolist(), covariates=columns
    )
    options = structure | {"difficulty": family}
    free, values = evaluated(build_program(asked("bayes", data, **options), family), 3)
    expected = 0.0
    for system in range(2):
        base = free["shape"][system] * function
        for q, offset in enumerate(offsets(free, system)):
            seen = np.bincount(counts[system, q], minlength=3)
            share, alpha, beta, atoms = law(free, system, offset)
            total = atoms[0] * (seen[0] == 4) + atoms[1] * (seen[2] == 4)
            for w, a, b in zip(share, alpha, beta, strict=True):
                nodes, weights = roots_jacobi(200, b - 1.0, a - 1.0)
                p = 0.5 * (nodes + 1.0)
                low, high = np.full(200, -400.0), np.full(200, 400.0)
                for _ in range(80):
                    middle = 0.5 * (low + high)
                    vector = softmax(base + middle[:, None] * score, axis=1)
                    below = vector @ score < p
                    low, high = np.where(below, middle, low), np.where(below, high, middle)
                total += w * weights @ np.prod(vector**seen, axis=1) / weights.sum()
            expected += np.log(total) + gammaln(5.0) - gammaln(seen + 1.0).sum()
    assert values["log count"].sum() == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize(
    ("pooling", "judge", "earlier"),
    [
        ("none", None, WEIGHT),
        ("none", {"a": ONE, "b": OTHER}, 0.0),
        ("complete", None, 0.0),
        ("complete", ONE, WEIGHT),
        ("partial", ONE, WEIGHT),
    ],
)
def test_fixed_priors_of_questions(pooling, judge, earlier) -> None:
    """Up to a constant: the orders of trials, and the normaliser that earlier trials have."""
    options = {"pooling": pooling, "judge": judge}
    if pooling != "partial":
        options["prior"] = bk.priors.BetaPrior(2.0, 3.0)
    options |= {"prior_trials": before() if earlier else None}
    model, gaps = build_program(asked(**options, prior_weight=earlier or 1.0), "beta"), []
    for seed in (4, 6):
        free, values = evaluated(model, seed)
        names = ["log p", "log successes", "prior_trials"]
        names += ["log mean_p"] if pooling == "complete" else []
        gap = sum(values[name].sum() for name in names if name in values)
        for system in range(2):
            p = free["mean_p"][[system]] if pooling == "complete" else free["p"][system]
            a, b = 2.0, 3.0
            if pooling == "partial":
                mean, total = free["mean_p"][system], 1.0 / free["icc"][system] - 1.0
                a, b = mean * total, (1.0 - mean) * total
                gap += QUESTIONS * betaln(a, b)
            gap -= (a * np.log(p) + b * np.log1p(-p)).sum()
            s, f = (1.0, 0.0) if judge is None else rates_of(free, judge, system)
            marked = f + (s - f) * p
            right = RIGHT[system] + earlier * BEFORE[system]
            wrong = TRIALS[system] + earlier * BEFORE_TRIALS[system] - right
            gap -= (right * np.log(marked) + wrong * np.log1p(-marked)).sum()
        gaps.append(gap)
    assert gaps[0] == pytest.approx(gaps[1], abs=1e-8)


@pytest.mark.parametrize("family", ["beta", "inflated", "mixture"])
def test_variables_have_the_declared_priors(family) -> None:
    """Up to a constant: other coordinates of shares, and the order of a mixture."""
    model, gaps = build_program(asked(**STRUCTURES[3], prior=PRIOR, difficulty=family), family), []
    for seed in (7, 8):
        free, values = evaluated(model, seed)
        logs = {name[4:]: value for name, value in values.items() if name.startswith("log ")}
        others = ("group_effect", "successes")
        total = sum(one.sum() for name, one in logs.items() if name not in others)
        fields = PRIOR.fields(family, 2, True)
        for system in range(2):
            total -= fields.log_density(coordinates(fields, free, system)[None])[0]
        gaps.append(total)
    assert gaps[0] == pytest.approx(gaps[1], abs=1e-6)


def coordinates(fields, free: dict[str, np.ndarray], system: int) -> np.ndarray:
    values = {"mean" if name == "mean_p" else name: one[system] for name, one in free.items()}
    if fields.pairs and values["mean"][0] > values["mean"][1]:
        values |= {name: values[name][::-1] for name in fields.pairs}
        values["share"] = 1.0 - values["share"]
    chart = {
        "slopes": lambda value: value,
        "group_sd": np.log,
        "atoms": lambda shares: np.log(shares[:-1] / shares[-1]),
    }
    return np.concatenate(
        [np.atleast_1d(chart.get(field.name, logit)(values[field.name])) for field in fields]
    )


@pytest.mark.parametrize("family", ["beta", "inflated", "mixture"])
def test_the_full_form_simulates_what_the_marginal_form_says(family) -> None:
    """Marks of one question with known hyperparameters, against their probabilities."""
    judge = bk.JudgeError(400, 500, 50, 500)
    data = bk.tally([[1, 0, 1]] * 400)
    scale = 1e7
    fixed = bk.priors.HyperPrior(
        (0.4 * scale, 0.6 * scale),
        (0.3 * scale, 0.7 * scale),
        share=(0.7 * scale, 0.3 * scale),
        atoms=(0.2 * scale, 0.1 * scale, 0.7 * scale),
    )
    inputs = asked(data=data, judge=judge, prior=fixed, difficulty=family)
    with build_program(inputs, family, "full"):
        drawn = pm.sample_prior_predictive(
            25, random_seed=3, compile_kwargs={"mode": "FAST_COMPILE"}
        )
    seen = drawn["prior_predictive"]["successes"].values.ravel()
    free = {
        "mean_p": np.array([0.4]),
        "icc": np.array([0.3]),
        "sensitivity": np.array([0.8]),
        "false_positive_rate": np.array([0.1]),
    }
    if family == "inflated":
        free["atoms"] = np.array([[0.2, 0.1, 0.7]])
    for marked in range(4):
        orders = [1.0, 3.0, 3.0, 1.0][marked]
        chance = orders * np.exp(log_chance(free, 0, 0.0, marked, 3 - marked, (0.8, 0.1)))
        assert (seen == marked).mean() == pytest.approx(chance, abs=0.025)


@pytest.mark.parametrize(
    ("metric", "options", "words"),
    [
        ("pass@1", {"covariates": "x", "pooling": "none"}, "must be left out with"),
        ("pass@1", {"group": "group", "prior": bk.priors.HyperPrior.bda3()}, "must be proper"),
        (
            "pass@1",
            {"group": "group", "pooling": "none", "difficulty": "mixture"},
            "must be left out with",
        ),
        ("plurality@1", {"group": "group", "pooling": "none"}, "must be 'partial' for votes"),
    ],
)
def test_what_has_no_model_is_refused(metric, options, words) -> None:
    with pytest.raises(ValueError, match=words):
        asked(metric, **options)

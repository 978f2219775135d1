"""Studies of the golden file, in plain data: what was observed, what is assumed, what is asked.

A study has one system (``right`` successes of ``trials``, by question), or several by name. Options
of partial pooling name their difficulty family, so that another default changes nothing here.
"""

from typing import Any

Study = dict[str, Any]

MIXED = {"right": [3, 0, 1, 4, 2, 4, 0, 3, 4, 1], "trials": [4] * 10}
RAGGED = {"right": [2, 0, 5, 1, 0, 7, 3, 1], "trials": [3, 2, 5, 6, 1, 9, 4, 1]}
ENDS = {"right": [0, 0, 0, 4, 4, 2, 0, 4, 1, 0, 4, 3], "trials": [4] * 12}
MANY = {  # how many questions were solved 0, 1, ..., 8 times of 8
    "right": [c for c, n in enumerate([70, 30, 22, 18, 15, 19, 26, 40, 60]) for _ in range(n)],
    "trials": [8] * 300,
}
GROUPED = {
    "right": [3, 4, 2, 4, 0, 1, 0, 2, 4, 4, 3, 1, 2, 0, 1],
    "trials": [4, 4, 4, 4, 4, 3, 4, 2, 4, 4, 4, 4, 4, 3, 4],
    "group": list("aaaabbbbcccddee"),
}
MINUTES = [1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0]
SLOPED = {
    "right": [4, 3, 4, 4, 2, 3, 1, 2, 0, 1, 0, 0],
    "trials": [4] * 12,
    "covariates": {"minutes": MINUTES},
}
WEIGHT = [1.0, 2.0, 0.5, 1.0, 4.0, 1.0, 3.0, 0.2, 1.0, 1.0]
JUDGE = {"tp": 46, "p": 50, "fp": 6, "n": 50}
EVERY = "pass@1,2,4,16 pass^2,4 maj@3 g-pass@4:0.5 mg-pass@4 auc@4 bayes"
BOTH = ["questions", "population"]
ALL = ["questions", "population", "new_groups"]
BETA = {"difficulty": "beta"}
BOOTSTRAP = {"population": "bootstrap"}


def _study(
    name: str, metrics: str, data: Study, kind: str, targets: Any = None, **more: Any
) -> Study:
    study = {"name": name, "metrics": metrics, "targets": targets or BOTH, "kind": kind}
    return study | data | more


def _exchangeable() -> list[Study]:
    thousand = {"right": [0, 1, 0, 3], "trials": [8] * 4}
    return [
        _study("mixed, beta", EVERY, MIXED, "beta", options=BETA),
        _study("ragged, beta", "pass@1,3,8 pass^3", RAGGED, "beta", options=BETA),
        _study("one trial", "pass@1,2", {"right": [1], "trials": [1]}, "beta", options=BETA),
        _study(
            "one trial of each",
            "pass@1,4",
            {"right": [1, 0, 1, 1, 0, 1], "trials": [1] * 6},
            "beta",
            options=BETA,
        ),
        _study(
            "all right",
            "pass@1,8 pass^8",
            {"right": [8] * 10, "trials": [8] * 10},
            "beta",
            options=BETA,
        ),
        _study(
            "all wrong",
            "pass@1,8,64",
            {"right": [0] * 20, "trials": [8] * 20},
            "beta",
            options=BETA,
        ),
        _study("far beyond the trials", "pass@16,64,1000", thousand, "beta", options=BETA),
        _study(
            "alike, icc near 0",
            "pass@1,2",
            {"right": [500, 497, 503, 499], "trials": [1000] * 4},
            "beta",
            options=BETA,
        ),
        _study(
            "all or nothing, icc near 1",
            "pass@1,4",
            {"right": [60, 0, 60, 60, 0, 0, 60], "trials": [60] * 7},
            "beta",
            options=BETA,
        ),
        _study(
            "a thousand million trials",
            "pass@1,4",
            {"right": [6 * 10**8, 10**9 - 5, 3], "trials": [10**9] * 3},
            "beta",
            options=BETA,
        ),
        _study(
            "informed prior",
            "pass@1,4",
            MIXED,
            "beta",
            options={"difficulty": "beta", "prior": {"mean": [2, 3], "icc": [1, 4]}},
        ),
        _study("three hundred questions", "pass@1,8 pass^8", MANY, "beta", options=BETA),
        _study(
            "three hundred questions, averaged",
            "pass@1,8",
            MANY,
            "points",
            options={"difficulty": "averaged"},
            components=8,
        ),
        _study("inflated", EVERY, ENDS, "points", options={"difficulty": "inflated"}),
        _study(
            "mixture", "pass@1,4,16 pass^4 maj@3", ENDS, "points", options={"difficulty": "mixture"}
        ),
        _study("averaged", EVERY, ENDS, "points", options={"difficulty": "averaged"}),
        _study(
            "prior of atoms",
            "pass@1,8",
            ENDS,
            "points",
            options={"difficulty": "inflated", "prior": {"atoms": [2, 1, 3]}},
        ),
    ]


def _large() -> list[Study]:
    billion = 10**9
    return [
        _study(
            "a thousand million trials, averaged",
            "pass@1,4",
            {"right": [6 * 10**8, billion - 5, 3], "trials": [billion] * 3},
            "points",
            options={"difficulty": "averaged"},
        ),
        _study(
            "a thousand million trials, none",
            "pass@1,4",
            {"right": [6 * 10**8, billion - 5, 3], "trials": [billion] * 3},
            "beta",
            options={"pooling": "none"},
        ),
        _study(
            "alike, icc near 0, averaged",
            "pass@1,2",
            {"right": [500, 497, 503, 499], "trials": [1000] * 4},
            "points",
            options={"difficulty": "averaged"},
        ),
        _study(
            "all or nothing, averaged",
            "pass@1,1000 pass^64",
            {"right": [60, 0, 60, 60, 0, 0, 60], "trials": [60] * 7},
            "points",
            options={"difficulty": "averaged"},
        ),
        _study(
            "all right, averaged",
            "pass@1,8 pass^64",
            {"right": [16] * 40, "trials": [16] * 40},
            "points",
            options={"difficulty": "averaged"},
        ),
        _study(
            "one question, averaged",
            "pass@1,4",
            {"right": [2], "trials": [5]},
            "points",
            options={"difficulty": "averaged"},
        ),
        _study(
            "judge that errs often",
            "pass@1,4",
            {
                "right": [1, 3, 2, 0, 6, 5, 8, 4],
                "trials": [8] * 8,
                "judge": {"tp": 15, "p": 20, "fp": 3, "n": 20},
            },
            "points",
            options=BETA,
        ),
    ]


def _other_pooling() -> list[Study]:
    none, complete = {"pooling": "none"}, {"pooling": "complete"}
    own = {"pooling": "none", "prior": {"alpha": 0.5, "beta": 2.0}}
    return [
        _study("mixed, none", EVERY, MIXED, "beta", options=none),
        _study("own prior, none", "pass@1,4,100", MIXED, "beta", options=own),
        _study("mixed, complete", EVERY, MIXED, "beta", options=complete),
        _study(
            "all right, complete",
            "pass@1 pass^64",
            {"right": [8] * 10, "trials": [8] * 10},
            "beta",
            options=complete,
        ),
        _study(
            "never tried, none",
            "pass@1",
            {"right": [4] * 8 + [0] * 92, "trials": [4] * 8 + [0] * 92, "missing": "ignore"},
            "beta",
            options=none,
        ),
        _study(
            "never tried, beta",
            "pass@1,4",
            {"right": [4, 3, 0, 2, 4, 0, 0, 0], "trials": [4] * 5 + [0] * 3, "missing": "ignore"},
            "beta",
            options=BETA,
        ),
        _study(
            "never tried, weights",
            "pass@1",
            {
                "right": [4, 3, 0, 2, 4, 0, 0, 0],
                "trials": [4] * 5 + [0] * 3,
                "missing": "ignore",
                "weight": [1.0, 2.0, 1.0, 0.5, 3.0, 2.0, 1.0, 1.0],
            },
            "beta",
            options=none,
        ),
    ]


def _structures() -> list[Study]:
    found = [
        _study("groups", "pass@1,2,8 pass^4", GROUPED, "points", ALL, options=BETA),
        _study(
            "groups count the same",
            "pass@1,4",
            GROUPED,
            "points",
            ALL,
            options=BETA | {"group_weights": "equal"},
        ),
        _study(
            "groups by profile",
            "pass@1",
            GROUPED,
            "points",
            ALL,
            options=BETA | {"group_weights": {"a": 1.0, "b": 5.0, "c": 1.0, "d": 0.5, "e": 0.5}},
        ),
        _study(
            "two groups that differ",
            "pass@1,4",
            {"right": [4, 4, 4, 3, 0, 0, 1], "trials": [4] * 7, "group": list("xxxxyyy")},
            "points",
            ALL,
            options=BETA,
        ),
        _study("covariate", "pass@1,2,8 pass^4", SLOPED, "points", options=BETA),
        _study(
            "two covariates",
            "pass@1,4",
            SLOPED
            | {"covariates": {"minutes": MINUTES, "maths": [0, 1, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1]}},
            "points",
            options=BETA,
        ),
        _study(
            "weights, beta",
            "pass@1,4",
            MIXED | {"weight": WEIGHT},
            "beta",
            options=BETA | BOOTSTRAP,
        ),
        _study(
            "weights, averaged",
            "pass@1,4",
            MIXED | {"weight": WEIGHT},
            "points",
            options={"difficulty": "averaged"} | BOOTSTRAP,
        ),
        _study(
            "weights, none",
            "pass@1,4 pass^2",
            MIXED | {"weight": WEIGHT},
            "beta",
            options={"pooling": "none"},
        ),
        _study(
            "weights, complete",
            "pass@1,4",
            MIXED | {"weight": WEIGHT},
            "beta",
            options={"pooling": "complete"},
        ),
        _study(
            "covariate and weights",
            "pass@1,4",
            SLOPED | {"weight": [1.0, 3.0, 1.0, 0.5, 2.0, 1.0, 1.0, 5.0, 1.0, 1.0, 2.0, 0.1]},
            "points",
            options=BETA,
        ),
    ]
    for name, options in (
        ("beta", BETA),
        ("inflated", {"difficulty": "inflated"}),
        ("averaged", {"difficulty": "averaged"}),
        ("none", {"pooling": "none"}),
        ("complete", {"pooling": "complete"}),
    ):
        found.append(
            _study(f"judge, {name}", "pass@1,4", ENDS | {"judge": JUDGE}, "points", options=options)
        )
    found.append(
        _study(
            "two families of unequal prior probability",
            "pass@1,4,16",
            ENDS,
            "points",
            options={"difficulty": {"beta": 5.0, "inflated": 1.0}},
        )
    )
    earlier = {"right": [3, 1, 0, 4, 2, 3, 0, 2, 4, 2], "trials": [4] * 10, "weight": 0.3}
    found += [
        _study(
            f"prior trials at a weight, {pooling}",
            "bayes max@4",
            MIXED | {"prior_trials": earlier},
            "points",
            options={"pooling": pooling, **(BETA if pooling == "partial" else {})},
            has_evidence=False,
        )
        for pooling in ("partial", "none", "complete")
    ]
    return found


GRADED = {
    "marks": [
        ["fail", "part", "pass", "pass"],
        ["fail", "fail", "part", "fail"],
        ["pass"] * 4,
        ["part", "part", "pass", "fail"],
        ["fail"] * 4,
        ["pass", "part", "pass", "pass"],
        ["fail", "part", "part", "part"],
        ["pass", "fail", "pass", "pass"],
    ],
    "scores": {"fail": 0.0, "part": 0.4, "pass": 1.0},
}
FEW = {
    "marks": [["a", "d", "b"], ["b", "b"], ["c", "d", "d", "a"], ["a"], ["d", "c"]],
    "scores": {"a": -1.0, "b": 0.0, "c": 0.5, "d": 2.0},
}


def _categories() -> list[Study]:
    earlier = {"marks": [["pass", "part"], ["fail", "fail"]] * 4, "weight": 0.5}
    partial, none, complete = ({"pooling": name} for name in ("partial", "none", "complete"))
    return [
        _study("graded, partial", "bayes max@2,4,16", GRADED, "scored", options=partial),
        _study("graded, none", "bayes max@2,4", GRADED, "scored", options=none),
        _study("graded, complete", "bayes max@2,4", GRADED, "scored", options=complete),
        _study("four scores, ragged", "bayes max@3", FEW, "scored", options=partial),
        _study(
            "four scores, own prior",
            "bayes max@3",
            FEW,
            "scored",
            options=none | {"prior": {"concentration": [0.5, 1.0, 1.0, 2.0]}},
        ),
        _study(
            "graded, informed prior",
            "bayes max@4",
            GRADED,
            "scored",
            options=partial | {"prior": {"mean": [1.0, 2.0, 3.0], "icc": [2.0, 3.0]}},
        ),
        _study(
            "two scores, partial",
            "bayes max@4",
            {
                "marks": [["good"] * c + ["bad"] * (4 - c) for c in (3, 0, 1, 4, 2, 4, 0, 3, 4, 1)],
                "scores": {"bad": 0.0, "good": 2.0},
            },
            "scored",
            options=partial,
        ),
        *(
            _study(
                f"graded, prior trials, {options['pooling']}",
                "bayes max@4",
                GRADED | {"prior_trials": earlier},
                "scored",
                options=options,
                has_evidence=False,
            )
            for options in (partial, none, complete)
        ),
    ]


ROOMS = {
    "right": [3, 2, 3, 1, 0, 0, 1, 3, 2, 0],
    "trials": [3, 3, 3, 3, 3, 2, 3, 3, 3, 3],
    "group": list("aaabbbccdd"),
}
LENGTH = {"covariates": {"length": [1.0, 2.0, 2.5, 4.0, 5.0, 7.0, 4.5, 1.5, 3.0, 8.0]}}
CLEAR = {"judge": {"tp": 46, "p": 50, "fp": 3, "n": 50}}
SHARES = {"weight": [1.0, 2.0, 1.0, 0.5, 1.0, 4.0, 1.0, 1.0, 3.0, 1.0]}
ALONE = {name: ROOMS[name] for name in ("right", "trials")}


def _combined() -> list[Study]:
    """What could not be combined when these were made; where a target has one meaning only."""
    few, some = {"points": (12, 12500)}, {"points": (13, 25000)}
    inflated, mixture = {"difficulty": "inflated"}, {"difficulty": "mixture"}
    averaged, complete = {"difficulty": "averaged"}, {"pooling": "complete"}
    same = ["questions"]
    earlier = {
        "prior_trials": {
            "right": [2, 1, 2, 0, 1, 0, 0, 2, 1, 1],
            "trials": [2] * 10,
            "weight": 0.5,
        }
    }
    cases: list[tuple[str, str, Study, list[str], Study]] = [
        ("groups, inflated", "pass@1,4", ROOMS | few, ALL, inflated),
        ("groups, mixture", "pass@1,4", ROOMS | few, ALL, mixture),
        ("groups, averaged", "pass@1,4", ROOMS | few, ALL, averaged),
        ("groups, judge", "pass@1,4", ROOMS | CLEAR | few, ALL, BETA),
        ("groups, covariate", "pass@1,4", ROOMS | LENGTH | few, ALL, BETA),
        ("groups, weights", "pass@1,4", ROOMS | SHARES | few, same, BETA),
        ("groups, complete", "pass@1,4", ROOMS, ALL, complete),
        ("groups, none", "pass@1,4", ROOMS, same, {"pooling": "none"}),
        ("groups, prior trials", "bayes max@2", ROOMS | earlier | few, ALL, {"pooling": "partial"}),
        ("covariate, inflated", "pass@1,4", ALONE | LENGTH, BOTH, inflated),
        ("covariate, mixture", "pass@1,4", ALONE | LENGTH | some, BOTH, mixture),
        ("covariate, averaged", "pass@1,4", ALONE | LENGTH | some, BOTH, averaged),
        ("covariate, judge", "pass@1,4", ALONE | LENGTH | CLEAR | some, BOTH, BETA),
        ("judge, mixture", "pass@1,4", ALONE | CLEAR | some, BOTH, mixture),
        ("judge, weights", "pass@1,4", ALONE | CLEAR | SHARES | some, BOTH, BETA | BOOTSTRAP),
        ("judge, weights, none", "pass@1,4", ALONE | CLEAR | SHARES, BOTH, {"pooling": "none"}),
        ("judge, weights, complete", "pass@1,4", ALONE | CLEAR | SHARES, BOTH, complete),
        (
            "groups, covariate, judge, inflated, weights",
            "pass@1,4",
            ROOMS | LENGTH | CLEAR | SHARES | few,
            BOTH,
            inflated,
        ),
    ]
    grades = ["low", "mid", "high"]
    graded: Study = {
        "marks": [[grades[min(max(c + e, 0), 2)] for e in (-1, 0, 0)] for c in ROOMS["right"]],
        "scores": {"low": 0.0, "mid": 0.3, "high": 1.0},
    }
    partial, group = {"pooling": "partial"}, {"group": ROOMS["group"]}
    cases += [
        ("graded, groups", "bayes max@2", graded | group | few, ALL, partial),
        ("graded, covariate", "bayes max@2", graded | LENGTH | some, BOTH, partial),
        ("graded, weights", "bayes max@2", graded | SHARES, BOTH, partial | BOOTSTRAP),
        ("graded, weights, none", "bayes max@2", graded | SHARES, BOTH, {"pooling": "none"}),
        ("graded, weights, complete", "bayes max@2", graded | SHARES, BOTH, complete),
        ("graded, groups, covariate", "bayes max@2", graded | group | LENGTH | few, ALL, partial),
        ("graded, groups, none", "bayes max@2", graded | group, same, {"pooling": "none"}),
    ]
    return [
        _study(
            name,
            metrics,
            data,
            "scored" if "marks" in data else "points",
            targets,
            options=options,
            has_evidence="prior_trials" not in data,
        )
        for name, metrics, data, targets, options in cases
    ]


def studies() -> list[Study]:
    return (
        _exchangeable() + _large() + _other_pooling() + _structures() + _categories() + _combined()
    )

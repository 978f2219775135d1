"""Results of the library against golden results, each from a witness that imports none of it.

The file golden.json has studies in plain data, and statistics with the standard errors of the
witness (tests/golden/make_golden.py).
"""

import json
from functools import cache
from math import comb, log
from pathlib import Path
from typing import Any

import pytest

import bayesatk as bk

FILE = Path(__file__).with_name("golden.json")
STUDIES = {study["name"]: study for study in json.loads(FILE.read_text())}
OF_SD = {"beta": 1e-3, "points": 0.02, "scored": 0.03}  # of means and of sds
OF_WIDTH = 0.01  # of the ends of an interval, and their own stated error up to
QUICK = ("groups, judge", "covariate, judge", "groups, none", "groups, complete")
EXCUSED = 0.05  # of the width: a larger one is wrong, even if it is stated
NATS = {"beta": 1e-4, "points": 0.02, "scored": 0.03}
STANDARD_ERRORS = 4.0  # of the witness, beside the tolerance


def outcomes_of(study: dict[str, Any]) -> bk.Outcomes:
    columns = {name: study[name] for name in ("group", "covariates", "weight") if name in study}
    if "marks" in study:
        return bk.tally(study["marks"], scores=study["scores"], **columns)
    missing = study.get("missing", "error")
    return bk.tally(study["right"], trials=study["trials"], missing=missing, **columns)


def options_of(study: dict[str, Any]) -> dict[str, Any]:
    options = dict(study["options"])
    for name in ("group", "covariates"):
        if name in study:
            options[name] = name if name == "group" else list(study[name])
    if "judge" in study:
        options["judge"] = bk.JudgeError(**study["judge"])
    if "prior" in options:
        fields = {
            name: tuple(x) if isinstance(x, list) else x for name, x in options["prior"].items()
        }
        categories = "marks" in study
        none = options.get("pooling", "partial") != "partial"
        kinds = (
            bk.priors.HyperPrior,
            bk.priors.BetaPrior,
            bk.priors.DirichletHyperPrior,
            bk.priors.DirichletPrior,
        )
        options["prior"] = kinds[2 * categories + none](**fields)
    elif "marks" in study and options.get("pooling", "partial") == "partial":
        options["prior"] = bk.priors.DirichletHyperPrior()  # the witness has no order of levels
    earlier = study.get("prior_trials")
    if earlier:
        if "marks" in earlier:
            options["prior_trials"] = bk.tally(earlier["marks"], scores=study["scores"])
        else:
            options["prior_trials"] = bk.tally(earlier["right"], trials=earlier["trials"])
        options["prior_weight"] = earlier["weight"]
    return options


@cache
def evaluated(name: str) -> tuple[dict[tuple[str, str, str], Any], dict[str, float]]:
    """Rows by (system, metric, target), and log evidence by system."""
    study = STUDIES[name]
    fit = bk.evaluate(outcomes_of(study), study["metrics"], rng=1, **options_of(study))
    rows = bk.table(fit).set_index(["system", "metric", "target"])
    found = {
        tuple(map(str, key)): row
        for key, row in zip(rows.index, rows.to_dict("records"), strict=True)
    }
    evidence = {}
    if "log_evidence" in study and study.get("has_evidence", True):
        logs = bk.checks.log_evidence(fit)
        evidence = dict(zip(map(str, logs["system"].values), map(float, logs), strict=True))
    return found, evidence


def differences(study: dict[str, Any]) -> list[tuple[str, str, str, float, float, float]]:
    """Every number: metric, target, statistic, golden value, difference, largest difference."""
    found, evidence = evaluated(study["name"])
    compared = []
    for row in study["rows"]:
        values = found[row["system"], row["metric"], row["target"]]
        sd, width = row["sd"][0], row["ci_upper"][0] - row["ci_lower"][0]
        for name in ("mean", "sd", "ci_lower", "ci_upper"):
            golden, error = row[name]
            most = STANDARD_ERRORS * error + 1e-12
            if name in ("mean", "sd"):
                most += OF_SD[study["kind"]] * sd
            else:
                most += OF_WIDTH * width + min(values["ci_error"], EXCUSED * width)
            compared.append(
                (row["metric"], row["target"], name, golden, values[name] - golden, most)
            )
    if evidence:
        golden, error = study["log_evidence"]
        most = STANDARD_ERRORS * error + NATS[study["kind"]]
        difference = sum(evidence.values()) - golden
        compared.append(("evidence", "", "log_evidence", golden, difference, most))
    return compared


def marks_of(name: str) -> list[pytest.MarkDecorator]:
    """Studies of combined features that take seconds are long tests."""
    slow = name.startswith(("groups, ", "graded, groups", "covariate, ")) and name not in QUICK
    return [pytest.mark.long] * slow


LEFT_OUT = (
    "ragged, beta", "inflated", "mixture", "averaged", "mixed, none", "mixed, complete", "groups",
    "covariate", "judge, inflated", "judge, none", "judge, complete", "groups, judge",
    "groups, covariate", "covariate, averaged", "groups, covariate, judge, inflated, weights",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "times"),
    [
        *(pytest.param(name, 1, marks=marks_of(name)) for name in LEFT_OUT),
        ("two groups that differ", 4),  # more than a dozen questions in one
    ],
)
def test_leaving_a_question_out_is_a_ratio_of_evidences(name: str, times: int) -> None:
    """Of the evidence of all, which is golden, and of that with a question never tried."""
    study = STUDIES[name]
    study = study | {
        column: times * study[column] for column in study.keys() & {"right", "trials", "group"}
    }

    def fitted(right: list[int], trials: list[int]) -> Any:
        data = outcomes_of(study | {"right": right, "trials": trials, "missing": "ignore"})
        return bk.evaluate(data, "pass@1", rng=1, draws=50, **options_of(study))

    whole = fitted(study["right"], study["trials"])
    elpd = bk.checks.exact_loo(whole).elpd_i.values[0]
    for question in (0, len(elpd) - 1):
        right, trials = list(study["right"]), list(study["trials"])
        ways = comb(trials[question], right[question])
        right[question] = trials[question] = 0
        without = bk.checks.log_evidence(fitted(right, trials))
        expected = float((bk.checks.log_evidence(whole) - without)[0]) + log(ways)
        assert elpd[question] == pytest.approx(expected, abs=NATS[study["kind"]])


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name)) for name in STUDIES])
def test_a_result_is_golden(name: str) -> None:
    outside = [
        f"{metric} {target} {statistic}: {golden:.6g}, off by {difference:.2g}, at most {most:.2g}"
        for metric, target, statistic, golden, difference, most in differences(STUDIES[name])
        if not abs(difference) <= most
    ]
    assert not outside, "\n".join(outside)

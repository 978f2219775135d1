"""Covariates on the command line."""

import pytest

from tests.cli.shell import refused, succeeded


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "runs.csv"
    rows = ["system,question,trial,outcome,minutes,domain"]
    for s, system in enumerate(("old", "new", "newest")):
        for question in range(24):
            minutes, domain = 2 ** (question % 6), "law" if question % 4 else "art"
            for trial in range(3):
                right = int((question * 7 + trial * 5) % 6 + s >= question % 6)
                rows.append(f"{system},{question},{trial},{right},{minutes},{domain}")
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.long
def test_evaluate_and_compare_take_covariates(table) -> None:
    asked = ("-m", "pass@1", "--covariate", "minutes", "--covariate", "domain", "--seed", 1)
    printed = succeeded("evaluate", table, *asked)
    for words in (
        "Coefficients of covariates",
        "domain[T.law]",
        "minutes (6 values)",
        "domain (2 values)",
    ):
        assert words in printed
    assert "Differences between systems" in succeeded("compare", table, *asked)


@pytest.mark.parametrize(("options", "words"), [
    (["hours"], "hours"),
    (["minutes", "--pooling", "none"], "each question has a prior of its own, and its covariates"),
])  # fmt: skip
def test_covariates_that_have_no_effect_are_refused(table, options, words) -> None:
    assert words in refused("evaluate", table, "-m", "pass@1", "--covariate", *options)

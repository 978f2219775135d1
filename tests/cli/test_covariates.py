"""Covariates on the command line."""

import pytest
from typer.testing import CliRunner

from bayesatk.cli.app import app


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


def run(*arguments: object):
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.mark.long
def test_evaluate_and_compare_take_covariates(table) -> None:
    asked = ("-m", "pass@1", "--covariate", "minutes", "--covariate", "domain", "--seed", 1)
    done = run("evaluate", table, *asked)
    assert done.exit_code == 0, done.output
    assert "Coefficients of covariates" in done.output
    assert "domain[T.law]" in done.output
    card = " ".join(done.output.split())
    assert "minutes (6 values)" in card
    assert "domain (2 values)" in card
    compared = run("compare", table, *asked)
    assert compared.exit_code == 0, compared.output
    assert "Differences between systems" in compared.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("evaluate", "-m", "pass@1", "--covariate", "hours"), "hours"),
        (
            ("evaluate", "-m", "pass@1", "--covariate", "minutes", "--pooling", "none"),
            "each question has a prior of its own, and its covariates",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(table, arguments, says) -> None:
    command, *options = arguments
    done = run(command, table, *options)
    assert done.exit_code == 2
    assert says.strip("'").replace("'", "") in done.output.replace("'", "")
    assert done.output.count("\n") == 1

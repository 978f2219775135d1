"""A formula on the command line."""

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
def test_evaluate_and_compare_take_a_formula(table) -> None:
    pytest.importorskip("formulaic")
    asked = ("-m", "pass@1", "--covariate", "~ log2(minutes) + domain", "--seed", 1)
    done = run("evaluate", table, *asked)
    assert done.exit_code == 0, done.output
    assert "Coefficients of covariates" in done.output
    assert "log2(minutes)" in done.output
    card = " ".join(done.output.split())
    assert "minutes (6 values)" in card
    assert "domain (2 values)" in card
    compared = run("compare", table, *asked)
    assert compared.exit_code == 0, compared.output
    assert "Differences between systems" in compared.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("evaluate", "-m", "pass@1", "--covariate", "~ log2(hours)"), "hours"),
        (("evaluate", "-m", "pass@1", "--covariate", "~ open(minutes)"), "'--covariate' must be"),
        (("evaluate", "-m", "pass@1", "--covariate", "~ a", "--covariate", "~ b"), "at most"),
        (("baseline", "--guess", "0.5", "--covariate", "~ minutes"), "no formula"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(table, arguments, says) -> None:
    pytest.importorskip("formulaic")
    command, *options = arguments
    done = run(command, table, *options)
    assert done.exit_code == 2
    assert says.strip("'").replace("'", "") in done.output.replace("'", "")
    assert done.output.count("\n") == 1

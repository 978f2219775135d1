"""The commands of the page on logs run as they are written, one for every format."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayesatk.cli.app import app
from bayesatk.io.formats import LOGS, RECORD_LOGS

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore::bayesatk.OutcomeWarning")]
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "logs.md").read_text()
ROWS = re.findall(r"^\| ([^|]+) \| `(bayesatk [^`]+)` \|$", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    return shutil.copytree(ROOT / "tests" / "logs", tmp_path_factory.mktemp("page") / "logs")


@pytest.mark.parametrize(("name", "command"), ROWS, ids=[name for name, _ in ROWS])
def test_the_command_of_a_format(name, command, logs, monkeypatch):
    monkeypatch.chdir(logs)
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    assert done.exit_code == 0, done.output
    assert "Outcomes:" in done.output
    assert "like these" in done.output


def test_every_format_has_a_command():
    """The formats in two forms, and summaries without trials, need no command of their own."""
    page = " ".join(re.sub(r"[-\s]", "", name).lower() for name, _ in ROWS)
    page += " " + " ".join(command for _, command in ROWS)
    forms = {"verifiers-traces", "terminal-bench-trial", "swe-bench-instance", "tau2-simulations",
             "deepeval-latest", "math-arena-rows"}  # fmt: skip
    summaries = {one.name for one in RECORD_LOGS if one.summary}
    other = {"lm-eval": "lm_eval"}
    for name in set(LOGS) - forms - summaries:
        assert other.get(name, name.replace("-", "")) in page, name

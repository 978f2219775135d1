"""The commands of the page on logs run as they are written, one for every format."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import bayesatk as bk
from bayesatk.cli.app import app
from bayesatk.io.logs.formats import LOGS, detect
from bayesatk.io.sources import Source

pytestmark = pytest.mark.filterwarnings("ignore::bayesatk.OutcomeWarning")
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "logs.md").read_text()
TABLES = [
    ("long table", "bayesatk evaluate tables/long.csv -m pass@1,2"),
    ("counts", "bayesatk evaluate tables/counts.csv -m pass@1,8"),
    ("lists", "bayesatk evaluate tables/lists.jsonl -m pass@1,3"),
    ("records within an object", "bayesatk evaluate tables/nested.json -m pass@1 "
     "--column question=task.id --column outcome=reward_info.reward"),
    ("wide table", "bayesatk compare tables/wide.csv --wide -m pass@1,4 --seed 1"),
]  # fmt: skip
ROWS = re.findall(r"^\| ([^|]+) \|.*\| `(bayesatk [^`]+)` \|$", PAGE, re.MULTILINE) + TABLES


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


def formats_of(words, logs):
    """What is read by a command: the formats of the files that it names, and of folders."""
    paths = [logs / word.rpartition("=")[2] for word in words[2:] if not word.startswith("-")]
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*"))]
    return {detected(file) for file in files if file.is_file()}


def detected(file):
    try:
        return detect(Source(file, None, ""))
    except bk.OutcomeError:  # no data
        return ""


def test_every_format_has_a_command(logs):
    """Told by the files that the commands read; summaries hold no trials."""
    read = set().union(*(formats_of(shlex.split(command), logs) for _, command in ROWS))
    assert read >= set(LOGS) - {
        log_format.name for log_format in LOGS.values() if log_format.summary
    }

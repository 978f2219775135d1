"""Every case study runs, and its headline numbers are the expected ones."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bayesatk.metrics.grid import FAMILIES

STUDIES = Path(__file__).parents[2] / "case_studies"
CELL = re.compile(r"```\{code-cell\} python\n(?::[^\n]*\n)*(.*?)```", re.DOTALL)


# Ten seconds or more, for many models compiled or hundreds of fits: left to make test-all.
LONG = {
    "01_real_difference", "02_agent_reliability", "04_pass_at_100", "05_leaderboards",
    "06_classics", "07_labels_and_a_judge",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _metrics_of_the_library_only() -> Iterator[None]:
    """Take out the metrics that studies register."""
    before = dict(FAMILIES)
    yield
    FAMILIES.clear()
    FAMILIES.update(before)


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(name, marks=[pytest.mark.long] if name in LONG else [])
        for name in sorted(path.parent.name for path in STUDIES.glob("*/expected.json"))
    ],
)
def test_case_study(
    folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = STUDIES / folder / f"{folder[3:]}.md"
    monkeypatch.chdir(notebook.parent)  # as Jupyter does
    names: dict[str, object] = {}
    exec(compile("\n".join(CELL.findall(notebook.read_text())), str(notebook), "exec"), names)
    expected = json.loads((STUDIES / folder / "expected.json").read_text())
    for expression, (value, tolerance) in expected.items():
        assert eval(expression, names) == pytest.approx(value, abs=tolerance), expression
    assert capsys.readouterr().out

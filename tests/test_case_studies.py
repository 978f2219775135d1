"""Every case study runs, and its headline numbers are the expected ones."""

import json
import re
from pathlib import Path

import pytest

STUDIES = Path(__file__).parents[1] / "case_studies"
CELL = re.compile(r"```\{code-cell\} python\n(.*?)```", re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("folder", sorted(path.parent.name for path in STUDIES.glob("*/*.md")))
def test_case_study(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    (notebook,) = (STUDIES / folder).glob("*.md")
    names: dict[str, object] = {}
    exec(compile("\n".join(CELL.findall(notebook.read_text())), str(notebook), "exec"), names)
    expected = json.loads((STUDIES / folder / "expected.json").read_text())
    for expression, (value, tolerance) in expected.items():
        assert eval(expression, names) == pytest.approx(value, abs=tolerance), expression
    assert capsys.readouterr().out

"""The draft of the paper: every number in it is computed, and every reference is there."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAPER = (ROOT / "docs/paper/paper.md").read_text()
HEADER, _, BODY = PAPER.removeprefix("---\n").partition("\n---\n")
PROSE, _, NUMBERS = BODY.partition("<!--")
CODE = re.findall(r"```python\n(.*?)```", NUMBERS, re.DOTALL)[0]
STATED = dict(re.findall(r"^(\S.*?) -> (.+)$", NUMBERS.partition("```python")[2], re.MULTILINE))
NUMBER = re.compile(r"[+-]?\d+(?:\.(\d+))?")


def _plain(prose: str) -> str:
    """Prose on one line, without references, code and names of metrics."""
    text = re.sub(r"\[@[^\]]+\]|`[^`]+`|pass[@^]\$?\w\$?", " ", prose)
    return " ".join(text.split())


def test_every_number_of_the_paper_is_stated() -> None:
    text = _plain(PROSE)
    for printed in STATED:
        assert printed in text, f"not in the paper: {printed}"
    for printed in sorted(STATED, key=len, reverse=True):  # 95% after "95% where"
        text = re.sub(rf"(?<![\d.]){re.escape(printed)}(?!\d)", " ", text)
    assert not NUMBER.findall(text), [NUMBER.sub(r"[\g<0>]", text)]


@pytest.mark.slow
def test_every_number_of_the_paper_is_computed(monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    exec(compile(CODE, "paper.md", "exec"), names)
    for printed, expression in STATED.items():
        values = np.atleast_1d(np.asarray(eval(expression, names), dtype=float))
        numbers = list(NUMBER.finditer(printed))
        assert len(numbers) == len(values), printed
        for number, value in zip(numbers, values.tolist(), strict=True):
            digits = len(number[1] or "")
            # Half of a last digit, and a little for draws on another machine.
            close = abs(value - float(number[0])) <= 0.6 * 10.0**-digits
            assert value > float(number[0]) if "above" in printed else close, (printed, value)


def test_references_are_there_and_used() -> None:
    bibliography = (ROOT / "docs/paper/paper.bib").read_text()
    listed = re.findall(r"^@\w+\{(\w+),", bibliography, re.MULTILINE)
    cited = set(re.findall(r"@(\w+)", " ".join(re.findall(r"\[@[^\]]+\]", PROSE))))
    assert set(listed) == cited
    assert len(listed) == len(set(listed))
    assert "paper.bib" in HEADER

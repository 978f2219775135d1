"""The README and the pages like it are true: their Python runs and prints what they show."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


NUMBER = re.compile(r"\d+(?:\.(\d+))?")


def assert_same_but_for_a_last_digit(printed: str, shown: str) -> None:
    """Fail unless texts are the same; numbers may be rounded the other way on another machine."""
    assert NUMBER.sub("#", printed).startswith(NUMBER.sub("#", shown)), printed
    pairs = zip(NUMBER.finditer(printed), NUMBER.finditer(shown), strict=False)
    for number, stated in pairs:
        unit = 10.0 ** -len(stated[1]) if stated[1] else 0.0
        assert abs(float(number[0]) - float(stated[0])) <= 1.01 * unit, printed


@pytest.mark.slow
@pytest.mark.parametrize(("page", "outputs"), [("README.md", 3), ("AGENTS.md", 1)])
def test_code_blocks_run_and_print_what_is_shown(page, outputs, tmp_path, monkeypatch) -> None:
    text = (README.parent / page).read_text()
    blocks = re.findall(r"```(python|text)\n(.*?)```", text, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    printed = ""
    checked = 0
    for kind, text in blocks:
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, page, "exec"), namespace)
            printed = "\n".join(line.rstrip() for line in out.getvalue().splitlines())
        else:
            shown = text.strip().removesuffix("...").strip()
            assert_same_but_for_a_last_digit(printed.strip(), shown)
            checked += 1
    assert checked == outputs
    for name in re.findall(r'savefig\("(.+?)"\)', (README.parent / page).read_text()):
        assert (tmp_path / name).stat().st_size > 10_000
        assert (README.parent / "docs/_static" / name).exists(), "shown, and made by this code"


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target

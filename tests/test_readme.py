"""The README is true: its Python runs, in order, and prints what it shows."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```(python|text)\n(.*?)```", README.read_text(), flags=re.DOTALL)


@pytest.mark.slow
def test_code_blocks_run_and_print_what_is_shown(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    printed = ""
    checked = 0
    for kind, text in BLOCKS:
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, "README", "exec"), namespace)
            printed = out.getvalue()
        else:
            shown = text.strip().removesuffix("...").strip()
            assert printed.strip().startswith(shown), f"README shows\n{shown}\nbut got\n{printed}"
            checked += 1
    assert checked == 6


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target

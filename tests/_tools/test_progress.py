"""Progress bars: on a terminal, for what takes long; silent in pipes; items unchanged."""

import io
import subprocess
import sys

import pytest

from bayesatk._tools import progress
from bayesatk._tools.progress import track


class Terminal(io.StringIO):
    """Standard error as a person sees it."""

    def isatty(self) -> bool:
        return True


def watched(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Put a terminal in place of standard error; not in a fixture, after which pytest undoes it."""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setenv("TERM", "xterm")
    return found


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)


@pytest.mark.parametrize("shown", [True, False, None])
def test_items_are_what_they_were(monkeypatch, shown) -> None:
    watched(monkeypatch)
    assert list(track(range(4), "counting", progress=shown)) == [0, 1, 2, 3]
    assert list(track(iter("ab"), "spelling", total=2, progress=shown)) == ["a", "b"]
    assert list(track([], "nothing", progress=shown)) == []


@pytest.mark.usefixtures("_impatient")
def test_a_bar_is_shown_on_a_terminal_and_says_what_is_done(monkeypatch) -> None:
    terminal = watched(monkeypatch)
    assert list(track([1, 2, 3, 4], "counting")) == [1, 2, 3, 4]
    assert "counting" in terminal.getvalue()
    assert "75%" in terminal.getvalue()  # while the fourth of four is worked on


def test_no_bar_in_the_first_two_seconds_unless_asked_for(monkeypatch) -> None:
    terminal = watched(monkeypatch)
    list(track([1, 2], "quick"))
    assert terminal.getvalue() == ""
    list(track([1, 2], "asked for", progress=True))
    assert "asked for" in terminal.getvalue()


@pytest.mark.usefixtures("_impatient")
def test_no_bar_in_a_pipe_nor_where_it_is_not_wanted(monkeypatch, capsys) -> None:
    terminal = watched(monkeypatch)
    list(track([1, 2], "unwanted", progress=False))
    assert terminal.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", pipe := io.StringIO())
    list(track([1, 2], "in a pipe"))
    monkeypatch.setattr(sys, "stderr", None)  # as under pythonw
    list(track([1, 2], "nowhere"))
    assert (pipe.getvalue(), capsys.readouterr().out) == ("", "")


@pytest.mark.usefixtures("_impatient")
def test_a_loop_inside_a_loop_shows_one_bar(monkeypatch) -> None:
    terminal = watched(monkeypatch)
    for _ in track([1, 2], "outer"):
        list(track([1, 2], "inner", progress=True))
    assert "outer" in terminal.getvalue()
    assert "inner" not in terminal.getvalue()
    list(track([1, 2], "afterwards"))
    assert "afterwards" in terminal.getvalue()


def test_rich_is_imported_only_for_a_bar() -> None:
    code = (
        "import sys\nfrom bayesatk._tools.progress import track\n"
        "list(track([1], 'quiet'))\nprint(any(name.startswith('rich') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("installed", [True, False])
def test_a_notebook_has_a_bar_only_where_it_can_be_drawn(monkeypatch, installed) -> None:
    """Without ipywidgets rich warns in the notebook."""
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(progress, "find_spec", lambda name: sys if installed else None)
    assert progress.watched() is installed

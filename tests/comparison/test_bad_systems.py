"""Systems that cannot be compared: one clear line each, in Python and in a shell."""

from operator import attrgetter

import numpy as np
import pytest
from typer.testing import CliRunner

import bayesatk as bk
from bayesatk.cli.app import app

APART = "system,question,outcome\na,q1,1\na,q1,0\nb,q2,0\nb,q2,1\n"


def _line(raised: pytest.ExceptionInfo[ValueError]) -> str:
    """Return what an error says, which is one line."""
    text = str(raised.value)
    assert "\n" not in text
    assert len(text) < 250
    return text


@pytest.fixture(scope="module")
def apart():
    """Two systems that tried different questions."""
    trials = np.array([[2, 2, 0, 0], [0, 0, 2, 2]])
    data = bk.tally((trials // 2, trials), systems=["a", "b"], missing="ignore")
    return data, bk.evaluate(data, "pass@1,2", rng=1, draws=10)


@pytest.mark.parametrize("name", ["compare", "leaderboard"])
def test_systems_without_a_common_question_are_refused(apart, name) -> None:
    with pytest.raises(ValueError, match="must have two systems that tried the same") as raised:
        attrgetter(name)(bk)(apart[1])
    assert _line(raised).endswith("of 2 systems no two did. Run them on the same questions.")


@pytest.mark.parametrize("shared", [False, True])
def test_a_gate_of_different_questions_is_refused(apart, shared) -> None:
    data, _ = apart
    with pytest.raises(ValueError, match="new must have tried questions of") as raised:
        bk.decide.gate(data["a"], data["b"], metric="pass@1", margin=0.1, shared=shared)
    assert _line(raised).endswith("it shares none of 4 with it. Run both on the same questions.")
    with pytest.raises(ValueError, match="none was tried by all") as raised:
        data.shared()
    assert _line(raised).endswith("Run both on the same questions.")


@pytest.mark.parametrize("name", ["compare", "leaderboard"])
def test_one_system_cannot_be_compared(name) -> None:
    fit = bk.evaluate([[1, 0], [1, 1]], "pass@1,2", rng=1, draws=10)
    with pytest.raises(ValueError, match="at least two systems to compare; got one") as raised:
        attrgetter(name)(bk)(fit)
    assert "bayesatk.load({'a': 'first.csv', 'b': 'second.csv'})" in _line(raised)
    with pytest.raises(ValueError, match="prob_correct needs two systems") as raised:
        bk.plan(fit, "pass@1", prob_correct=0.9)
    assert _line(raised).endswith("got one.")


ALIKE = [("a", "  a"), ("é", "e\u0301"), ("m\u00a0x", "m x")]


@pytest.mark.parametrize(("first", "second"), ALIKE)
def test_names_that_are_equal_once_normalised_are_refused(tmp_path, first, second) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(f"system,question,outcome\n{first},q,1\n{second},q,0\n", encoding="utf-8")
    of_one_system = tmp_path / "one.csv"
    of_one_system.write_text("question,outcome\nq,1\n")
    runs = [[[1, 0]], [[1, 1]]]
    for read in (
        lambda: bk.tally(dict(zip((first, second), runs, strict=True))),
        lambda: bk.tally(runs, systems=[first, second]),
        lambda: bk.load(path),
        lambda: bk.load({first: of_one_system, second: of_one_system}),
    ):
        with pytest.raises(ValueError, match="names that can be told apart") as raised:
            read()
        assert "Rename one of them" in _line(raised)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", "apart.csv", "-m", "pass@1", "--missing", "ignore"],
         "FILE must have two systems that tried the same question; of 2 systems no two did."),
        (["gate", "partly.csv", "--system", "a", "--system", "b", "--policy", "gate.toml",
          "--missing", "ignore"],
         "Run them, or use those that both tried:\n   bayesatk gate partly.csv --system a "
         "--system b --policy gate.toml --shared --missing ignore\n"),
        (["plan", "three.csv", "-m", "pass@1", "--width", "0.3"],
         "choose them:\n   bayesatk plan three.csv -m pass@1 --width 0.3 --system a --system b\n"),
    ],
)  # fmt: skip
def test_in_a_shell_each_is_a_line_and_the_remedy_another(
    tmp_path, monkeypatch, arguments, said
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("apart.csv", APART),
        ("partly.csv", APART + "b,q1,1\n"),
        ("gate.toml", 'metric = "pass@1"\nmargin = 0.2\n'),
        ("three.csv", APART.replace("q2", "q1") + "c,q1,1\n"),
    ):
        (tmp_path / name).write_text(text)
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_the_same_outcomes_under_two_names_are_noted() -> None:
    marks = np.random.default_rng(1).integers(2, size=(30, 3))
    other = marks.copy()
    other[0] = 1 - other[0]
    note = "a and b have the same counts on each of 30 questions"
    for second, noted in ((marks, True), (other, False)):
        fit = bk.compare(bk.evaluate({"a": marks, "b": second}, "pass@1", rng=1))
        assert (note in str(fit)) == noted

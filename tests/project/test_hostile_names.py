"""Names of systems, questions and groups come from files of others: they stay text everywhere."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

import bayesatk as bk
from bayesatk.cli.app import app

SYSTEM = "\x1b[31mred\x1b[0m<script>alert(1)</script>[x](http://evil.test) www.evil.test"
OTHER = "b\x1b]0;title\x07"
GROUP = "g\x1b[1m"


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    runs = {name: rng.binomial(1, p, (8, 2)) for name, p in ((SYSTEM, 0.5), (OTHER, 0.7))}
    questions = [f"\x1b[2Jq{number}" for number in range(8)]
    return bk.tally(runs, questions=questions, group=[GROUP] * 4 + ["h"] * 4)


@pytest.fixture(scope="module")
def fit(data):
    return bk.compare(bk.evaluate(data, "pass@1", group="group", difficulty="beta", rng=1))


def _refusal(call) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        call()
    return str(caught.value)


def test_no_control_character_reaches_a_terminal(data, fit) -> None:
    gate = bk.decide.gate(fit, OTHER, metric="pass@1", margin=0.05)
    table = bk.table(fit)
    for text in (
        data.card(),
        str(data),
        str(fit),
        "\n".join(fit.notes),
        bk.claim(fit),
        str(gate),
        str(table),
        " ".join(table["sentence"]),
        _refusal(lambda: fit.sel(system=SYSTEM + "!")),
        _refusal(lambda: bk.evaluate(data, "pass@1", group_weights={GROUP: 1}, group="group")),
    ):
        assert not re.search(r"[^\n\t -\U0010ffff]|[\x7f-\x9f]", text), repr(text)


def test_errors_and_warnings_of_the_shell_have_none(tmp_path) -> None:
    missing = CliRunner().invoke(app, ["evaluate", "no\x1b[31msuch.csv"])
    assert missing.exit_code == 2
    path = tmp_path / "runs.csv"
    path.write_text("system,question,trial,outcome\na\x1b[31m,1,0,1\na\x1b[31m,1,1,\n")
    refused = CliRunner().invoke(app, ["evaluate", str(path)])
    assert refused.exit_code == 2
    for done in (missing, refused):
        assert done.stderr.startswith("bayesatk: ")
        assert "\x1b" not in done.stderr


def test_markdown_has_no_markup_or_link_of_a_name(fit) -> None:
    from bayesatk.comparison.gates.gate import gate_of
    from bayesatk.comparison.gates.policy import GatePolicy

    both = bk.tally(
        {"new": [[1, 0]] * 6, "baseline": [[1, 1]] * 6},
        questions=[f"q{number} {SYSTEM}" for number in range(6)],
    )
    floors = {f"q0 {SYSTEM}": 0.9}
    text = gate_of(both, GatePolicy("pass@1", 0.05, floors=floors), rng=0).markdown()
    shown = re.sub(r"\\(.)", "", text)  # an escaped character is only itself
    assert "red" in text
    assert "\x1b" not in text
    for markup in ("<", "[", "](", "://", "www."):
        assert markup not in shown

"""What an error proposes works as it is written: arguments in Python, options in the shell."""

import ast
import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayesatk as bk
from bayesatk.cli.app import app

RNG = np.random.default_rng(3)
RUNS = {"a": RNG.binomial(1, 0.5, (12, 3)), "b": RNG.binomial(1, 0.7, (12, 3))}
GRADES = {"a": RNG.choice([0.0, 0.5, 1.0], (12, 3)), "b": RNG.choice([0.0, 0.5, 1.0], (12, 3))}
GROUPS = list("xyzw") * 3
ROWS = [(s, q, t, (q + t) % 2, 0.1 * q + 0.1) for s in "ab" for q in range(6) for t in range(2)]
COSTS = pd.DataFrame(ROWS, columns=["system", "question", "trial", "outcome", "usd"])
SAID = [(q, t, "xyz"[(q + t) % 3], (q + t) % 3 == 0) for q in range(6) for t in range(3)]
ANSWERS = pd.DataFrame(SAID, columns=["question", "trial", "said", "outcome"])
VOTES = bk.tally(ANSWERS, columns={"answer": "said"})
RATES = pd.DataFrame({"question": [1, 2], "rate": [0.5, 0.2]})
APART = pd.DataFrame({"system": ["a", "b"], "question": [1, 2], "outcome": [1, 0]})
GRADED_DATA = bk.tally(GRADES, scores="numbers")
PAIR, SHARES = {"a": (0.6, 0.3), "b": (0.65, 0.3)}, (0.3, 0.3, 0.4)
THREE = bk.evaluate({**RUNS, "c": RUNS["a"]}, "pass@1", draws=20, rng=1)
DATA = bk.tally(RUNS, group=GROUPS, covariates={"minutes": list(range(12))})
FAST = {"draws": 20, "rng": 1, "progress": False}


def evaluate(**options):
    return bk.evaluate(**({"data": DATA, "metrics": "pass@1", "group": False} | FAST | options))


RESULTS = {
    "FIT": lambda: evaluate(),
    "ONE": lambda: evaluate(data={"a": RUNS["a"]}),
    "TAUS": lambda: evaluate(metrics=["g-pass@1,2:0.5", "g-pass@1,2:1"]),
    "CURVE": lambda: evaluate(metrics="pass@1,2"),
    "KEPT": lambda: evaluate(data={"a": RUNS["a"]}, keep=["p"]),
    "GRADED": lambda: evaluate(data=GRADED_DATA, metrics="mean"),
    "GROUPED": lambda: bk.evaluate(DATA, "pass@1", **FAST),
    "FEW_COSTS": lambda: evaluate(
        data=bk.tally(COSTS.query("question < 4"), cost="usd"), metrics="pass@1 cost"
    ),
    "COVARIED": lambda: evaluate(covariates="minutes"),
}


class Names(dict):
    """Names of this file; a result is evaluated when a call first names it."""

    def __missing__(self, name: str) -> object:
        self[name] = RESULTS[name]()
        return self[name]


NAMES = Names(globals())
# A call with a place that is left open (?), what is refused there, what is taken, and what the
# message says of it where that is not the same text.
PROPOSED = [
    # A number or a word in place of another.
    ("bk.evaluate(RUNS, 'pass@1', ci_prob=?)", "2", "0.95"),
    ("bk.compare(FIT, alpha=?)", "0", "0.05"),
    ("bk.compare(FIT, rope=?)", "1", "0.02"),
    ("bk.leaderboard(FIT, alpha=?)", "1", "0.05"),
    ("bk.plan(PAIR, 'pass@1', width=?)", "0.0", "0.1"),
    ("bk.plan(PAIR, 'pass@1', prob_correct=?)", "1.5", "0.9"),
    ("bk.plan(PAIR, 'pass@1', prob_ahead=?)", "1.5", "0.8"),
    ("bk.plan(PAIR, 'pass@1', trials=?)", "4", "[1, 4, 16]"),
    ("bk.plan(PAIR, 'pass@1', ci_prob=?)", "1.0", "0.95"),
    ("bk.plan(PAIR, 'pass@1', trials=[1], ?)", "width=0.1, prob_correct=0.9", "width=0.1"),
    ("bk.plan(?, 'pass@1', prob_correct=0.9)", "(0.6, 0.3)", "{'a': (0.6, 0.3), 'b': (0.65, 0.3)}"),
    ("bk.plan(THREE, 'pass@1', trials=[1, 2]?)", "", ", system=['a', 'b']"),
    ("bk.plan(PAIR, ?)", "'plurality@4'", "'maj@4'", "'maj@k'"),
    ("bk.plan((SHARES, 0.3), 'mean'?)", "", ", scores=[0, 0.5, 1]", "scores="),
    ("bk.decide.noise_floor(FIT, ci_prob=?)", "1.0", "0.95"),
    ("bk.decide.horizon(COVARIED, 'minutes', ci_prob=?)", "0.0", "0.95"),
    ("bk.decide.e_value(FIT, 'pass@1', alpha=?)", "0.0", "0.05"),
    ("bk.decide.e_value(ONE, 'pass@1'?)", "", ", threshold=0.5", "threshold"),
    ("bk.decide.e_value(FIT, threshold=0.5?)", "", ", metric='pass@1'"),
    ("bk.decide.e_value(FIT, 'pass@1', threshold=?)", "2.0", "0.5"),
    ("bk.decide.e_value(?, 'pass@1', threshold=0.5)", "bk.tally(RUNS, weight=range(1, 13))",
     "bk.tally(RUNS, weight=range(1, 13)).unweighted()", "To go on, use data.unweighted()"),
    ("bk.decide.e_value(FIT, 'pass@1'?)", ", trials=1", "", "Leave it out"),
    ("bk.decide.StoppingRule('pass@1', trials=9, width=?)", "0.0", "0.1"),
    ("bk.decide.?", "StoppingRule('pass@1', trials=2).decide(FIT)", "e_value(FIT, 'pass@1')",
     "Leave it out of bayesatk.decide.e_value"),
    ("bk.decide.StoppingRule('pass@1', trials=9, alpha=?)", "0.0", "0.05"),
    ("bk.checks.question_table(FIT, margin=?)", "0.7", "0.05"),
    ("bk.checks.question_table(FIT, ?)", "'pass@1,2'", "'pass@1'"),
    ("bk.checks.criticise(FIT, alpha=?, rng=1)", "0.0", "0.05"),
    ("bk.checks.check_trials(?)", "DATA", "RUNS", "the array"),
    ("bk.checks.check_trials(GRADES?)", "", ", scores={0: 0, 1: 1, 0.5: 0}",
     "scores={0: ..., 1: ..., 0.5: ...}"),
    ("bk.checks.check_trials(GRADES, scores=?)", "'numbers'", "{0: 0, 0.5: 0, 1: 1}",
     "'part': 0"),
    ("bk.checks.check_trials([[1, 0, 1, 1], [0, 0, 1, 1]], alpha=?)", "0.0", "0.05"),
    ("bk.checks.compare_models(?)", "{'a': FIT}", "{'a': FIT, 'b': evaluate(pooling='none')}",
     "another pooling"),
    ("bk.checks.?", "compare_models({'a': FIT})", "exact_loo(FIT)", "bayesatk.checks.exact_loo"),
    ("bk.checks.extrapolation_range(RUNS, 'pass@1', ci_prob=?)", "0.0", "0.95"),
    ("bk.checks.tail_exponent(FIT, ci_prob=?)", "0.0", "0.95"),
    ("bk.guessing.random_baseline(FIT, 0.25, rng=1, alpha=?)", "0.0", "0.05"),
    ("bk.guessing.random_baseline(FIT, ?)", "25", "0.25"),
    ("bk.guessing.random_baseline(evaluate(data=?), 0.25, rng=1)",
     "bk.tally(RUNS, weight=range(1, 13))", "bk.tally(RUNS, weight=range(1, 13)).unweighted()",
     "leave out weight, as data.unweighted() does"),
    ("bk.guessing.random_baseline_distribution(9, 0.5, rng=1, ci_prob=?)", "0.0", "0.95"),
    ("bk.guessing.max_random_p_value(0.63, 150, 0.5?)", "", ", decimals=2", "decimals="),
    # A policy and its gate.
    ("bk.decide.GatePolicy('pass@1', margin=?)", "0", "0.02"),
    ("bk.decide.GatePolicy('pass@1', 0.02, ci_prob=?)", "0.0", "0.95"),
    ("bk.decide.gate(FIT, 'a'?)", "", ", metric='pass@1', margin=0.02",
     "metric='pass@1' and margin=0.02"),
    ("bk.decide.gate(FIT, 'a', ?)", "{'metric': 'pass@1'}",
     "bk.decide.GatePolicy('pass@1', margin=0.02)"),
    ("bk.decide.gate(?, 'a', metric='pass@1', margin=0.1)", "THREE", "THREE.sel(system=['a', 'b'])",
     "fit.sel(system=['a', 'b'])"),
    ("bk.decide.gate(?, 'a', metric='pass@2', margin=0.1)", "FIT", "evaluate(metrics='pass@2')",
     "metrics='pass@2'"),
    ("bk.decide.gate(?, RUNS['b'], metric='pass@1', margin=0.1, rng=1)", "RUNS",
     "bk.tally(RUNS).sel(system='a')", "bayesatk.tally(data).sel(system='a')"),
    ("bk.decide.gate_rates(KEPT, ?, gates=2)", "'pass@1'",
     "bk.decide.GatePolicy('pass@1', margin=0.02)"),
    ("bk.decide.gate_rates(?, bk.decide.GatePolicy('pass@1', margin=0.02), gates=2)", "ONE", "KEPT",
     "keep=['p']"),
    ("bk.decide.gate_rates(ONE, bk.decide.GatePolicy('pass@1', margin=0.02), gates=2?)", "",
     ", target='population'"),
    ("bk.decide.gate_design(?, PAIR['a'], questions=9, trials=2)", "None",
     "bk.decide.GatePolicy('pass@1', margin=0.02)"),
    # Metrics that the data or the result have not.
    ("bk.evaluate(?, 'pass@1', **FAST)", "GRADED_DATA",
     "bk.tally(GRADES, success='score >= 0.5')", "success='score >= 0.5'"),
    ("bk.evaluate(?, 'cost', **FAST)", "DATA", "bk.tally(COSTS, cost='usd')",
     "bayesatk.tally(data, cost='usd')"),
    ("bk.plots.plot_cost(?)", "FIT",
     "bk.evaluate(bk.tally(COSTS, cost='usd'), ['pass@1', 'cost'], **FAST)",
     "metrics=['pass@1', 'cost']"),
    ("bk.plots.plot_cost(FEW_COSTS, target=?)", "'population'", "'questions'",
     "target='questions'"),
    ("bk.evaluate(?, 'plurality@2', **FAST)", "DATA",
     "bk.tally(ANSWERS, columns={'answer': 'said'})", "columns={'answer': ...}"),
    ("bk.evaluate(DATA, ?, **FAST)", "'plurality@2'", "'maj@2'", "'maj@k'"),
    ("bk.plots.plot_curve(CURVE, ?)", "'mean'", "'pass@'"),
    ("bk.plots.plot_curve(?)", "FIT", "evaluate(metrics='pass@1,2,4,8')", "'pass@1,2,4,8'"),
    ("bk.plots.plot_systems(?, 'pass@2')", "FIT", "evaluate(metrics='pass@2')", "Ask evaluate"),
    ("bk.table(?, by='group')", "FIT", "GROUPED", "group=..."),
    ("bk.table(evaluate(data=bk.tally(RUNS, group=['x'] * 12)), by=?)", "'group'", "'system'",
     "are of 'x', whose numbers are those of by='system'"),
    ("bk.table(?, 'coefficients')", "FIT", "COVARIED", "covariates=..."),
    ("bk.predict(?, {'minutes': [3]})", "FIT", "COVARIED", "covariates=['minutes']"),
    ("bk.predict(COVARIED, at=?)", "{}", "{'minutes': [0]}"),
    ("bk.plots.plot_curve(TAUS, ?)", "'g-pass@'", "'g-pass@:0.5'"),
    ("evaluate(metrics=?)", "'pas@1'", "'pass@1'"),
    # Models.
    ("bk.models.build_answers(?)", "DATA", "VOTES", "columns={'answer': ...}"),
    # Data.
    ("bk.tally(RUNS?).sel(group='x')", "", ", group=GROUPS", "group=..."),
    ("evaluate(data=RUNS, group_weights={'w': 1, 'x': 1, 'y': 1, 'z': 2}?)", "", ", group=GROUPS",
     "group=..."),
    ("bk.tally(RUNS, covariates={'minutes': ?})", "[1, 2]", "list(range(12))", "Give a list"),
    ("bk.tally(RUNS, weight=?)", "[0, *range(1, 12)]", "[*range(1, 13)]", "positive"),
    ("bk.tally(COSTS, columns={?'outcome': 'outcome'})", "'nothing': 'usd', ", "", "Leave a"),
    ("bk.decide.GatePolicy('pass@1', 0.02, pooled_floors=?)", "1", "False", "Leave it out"),
    ("bk.tally([[0, 0.5], [1, 1]]?)", "", ", scores='numbers'"),
    ("bk.tally([[0, None], [1, 1]]?)", "", ", missing='ignore'"),
    ("bk.tally([['C', 'I'], ['I', 'C']], scores=?)", "{}", "{'I': 0, 'C': 1}"),
    ("bk.tally([[0, 0.5], [1, 1]], scores=?)", "(1, 0)", "'numbers'"),
    ("bk.tally([[0.5, 0.5]], scores=?)", "'numbers'", "(0, 1)"),
    ("bk.tally([[0, 10], [40, 50]], scores='numbers', success=?)", "'score <= NUMBER'",
     "'score <= 30'"),
    ("bk.tally([[0, 1], [1, 1]], better='lower'?)", "", ", success='score <= 0'"),
    ("bk.tally(RUNS, group=?)", "7", "GROUPS", "Give a list"),
    ("bk.tally(RUNS, covariates=?)", "['minutes']", "{'minutes': list(range(12))}",
     "covariates={'minutes': ...}"),
    ("bk.tally(RATES, columns={'rate': 'rate'?})", "", ", 'trials': 10", "'trials': ..."),
    ("bk.tally(APART?)", "", ", missing='ignore'"),
    ("bk.tally(COSTS.assign(usd=[None, *COSTS['usd'][1:]]), cost='usd'?)", "",
     ", missing_cost='ignore'"),
    ("evaluate(covariates=?)", "['minutes', 'minutes']", "['minutes']", "covariates=['minutes']"),
    ("evaluate(data=RUNS, covariates=?)", "['minutes']", "{'minutes': list(range(12))}",
     "covariates={'minutes': ...}"),
    ("evaluate(data=?, covariates=['minutes'])", "bk.tally(RUNS)",
     "bk.tally(RUNS, covariates={'minutes': list(range(12))})",
     "bayesatk.tally(data, covariates=['minutes'])"),
    ("evaluate(data=VOTES, metrics='plurality@1', answer_prior=?)", "bk.priors.AnswerPrior()",
     "bk.priors.AnswerHyperPrior()"),
    ("evaluate(data=VOTES, metrics='plurality@1', group=list('ababab'), pooling=?)", "'none'",
     "'partial'"),
    ("evaluate(covariates='minutes', pooling=?)", "'none'", "'partial'"),
    ("evaluate(covariates='minutes', pooling=?)", "'complete'", "'partial'"),
    # Priors.
    ("evaluate(prior=?)", "bk.priors.DirichletPrior()", "bk.priors.HyperPrior()"),
    ("evaluate(pooling='none', prior=?)", "bk.priors.HyperPrior()", "bk.priors.BetaPrior()"),
    ("evaluate(difficulty='beta', pooling=?)", "'none'", "'partial'"),
    # Results in place of others.
    ("bk.compare(?)", "RUNS", "FIT", "bayesatk.evaluate"),
    ("bk.compare(?)", "ONE", "FIT", "at least two systems"),
    ("bk.table(FIT, ?)", "'leaderbord'", "'results'"),
    ("bk.plots.plot_leaderboard(?)", "FIT", "bk.leaderboard(FIT)", "bayesatk.leaderboard"),
    ("bk.plots.plot_ranks(?)", "FIT", "bk.compare(FIT)", "bayesatk.compare(fit)"),
    ("bk.plots.plot_difference(?)", "FIT", "bk.compare(FIT)", "bayesatk.compare"),
    ("bk.plots.plot_gate(?)", "FIT", "bk.decide.gate(FIT, 'a', metric='pass@1', margin=0.02)",
     "bayesatk.decide.gate"),
    ("bk.plots.plot_baseline(?, 0.25)", "FIT", "bk.guessing.random_baseline(FIT, 0.25, rng=1)",
     "bayesatk.guessing.random_baseline"),
    ("bk.claim(?)", "FIT", "bk.compare(FIT)", "bayesatk.claim(bayesatk.compare(fit))"),
    ("bk.claim(GRADED, ?, system='a')", "'pass@1'", "'mean'", "mean"),
]  # fmt: skip


@pytest.mark.parametrize("row", PROPOSED, ids=lambda row: f"{row[0]}: {row[1]}")
def test_what_a_message_proposes_is_taken(row) -> None:
    call, refused, taken, *said = row
    with pytest.raises((ValueError, TypeError)) as error:
        eval(call.replace("?", refused), NAMES)
    message = str(error.value).replace("bayesatk.", "bk.")
    assert (said or [taken.removeprefix(", ")])[0].replace("bayesatk.", "bk.") in message
    eval(call.replace("?", taken), NAMES)


CSV = {
    "plain": "system,question,trial,outcome\na,1,0,1\na,1,1,0\na,2,0,1\na,2,1,1\n",
    "hole": "system,question,trial,outcome\na,1,0,1\na,1,1,\na,2,0,1\na,2,1,1\n",
    "grades": "system,question,trial,outcome\na,1,0,0.2\na,1,1,0.7\na,2,0,1\na,2,1,0.4\n",
    "letters": "system,question,trial,outcome\na,1,0,C\na,1,1,I\na,2,0,C\na,2,1,P\n",
    "two": "system,question,trial,outcome\na,1,0,1\na,2,0,0\nb,1,0,1\nb,2,0,1\n",
    "said": "system,question,trial,outcome,said\na,1,0,1,x\na,1,1,0,y\na,2,0,1,z\na,2,1,1,z\n",
    "costs": "system,question,trial,outcome,usd\na,1,0,1,0.1\na,1,1,0,\na,2,0,1,0.3\na,2,1,1,0.2\n",
}
# A line that is refused, what its message proposes, and what is filled in for what it leaves open.
LINES = [
    ("evaluate hole.csv -m pass@1", "--missing ignore", {}),
    ("evaluate grades.csv -m pass@1", "--score numbers", {"-m pass@1": "-m mean"}),
    ("evaluate letters.csv -m mean", "--score I=0 --score C=1 --score P=SCORE", {"SCORE": "0.5"}),
    ("evaluate costs.csv -m pass@1 --cost usd", "--missing-cost ignore", {}),
    ("evaluate plain.csv -m pass@1 --difficulty beta --pooling none", "--pooling partial",
     {"--pooling none": ""}),
    ("gate two.csv --system b --system a --metric pass@1", "--metric pass@1 --margin 0.02",
     {"--metric pass@1": ""}),
    ("evaluate grades.csv -m pass@1 --score numbers", "--success 'score >= 0.5'", {}),
    ("evaluate costs.csv -m cost --missing-cost ignore", "--cost usd", {}),
    ("evaluate said.csv -m plurality@1", "--column answer=NAME", {"NAME": "said"}),
    ("compare plain.csv -m pass@1", "a=first.csv b=second.csv",
     {"plain.csv": "", "first": "plain", "second": "plain"}),
    ("plan two.csv --width 0.1 --prob-correct 0.9", "--width 0.1", {"--prob-correct 0.9": ""}),
    ("gate two.csv two.csv --metric pass@1 --margin 0.02", "--system NEW --system BASELINE",
     {"two.csv two.csv": "two.csv", "NEW": "a", "BASELINE": "b"}),
    ("guess --n 10", "--guess PROBABILITY", {"PROBABILITY": "0.5"}),
    ("plan --difficulty a=0.6,0.3 --prob-correct 0.9",
     "--difficulty a=0.6,0.3 --difficulty b=0.65,0.3", {"--difficulty a=0.6,0.3": ""}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "remedy", "filled"), LINES)
def test_a_proposed_option_is_taken(line, remedy, filled, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in CSV.items():
        (tmp_path / f"{name}.csv").write_text(text)
    refused = CliRunner().invoke(app, shlex.split(line))
    assert refused.exit_code == 2, refused.output
    assert remedy in refused.stderr
    for written, instead in filled.items():  # in the line where it is there, or in the remedy
        line = line.replace(written, instead)
        remedy = remedy if written.startswith("-") else remedy.replace(written, instead)
    done = CliRunner().invoke(app, shlex.split(f"{line} {remedy}"))
    assert done.exit_code in (0, 1, 3), done.output  # a gate may fail
    assert "bayesatk: " not in done.stderr.replace("bayesatk: warning", "")


SHELVES = (bk, bk.checks, bk.decide, bk.guessing, bk.metrics, bk.models, bk.plots, bk.priors)
PUBLIC = {name: getattr(shelf, name) for shelf in SHELVES for name in shelf.__all__}


def messages() -> Iterator[tuple[str, str]]:
    """Texts of the package that are no docstrings, with {} for what is filled in, and where."""
    root = Path(bk.__file__).parent
    for path in sorted(root.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf8"))
        skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = [getattr(piece, "value", None) for piece in node.values]
                text = "".join(piece if isinstance(piece, str) else "{}" for piece in parts)
                skipped |= {id(piece) for piece in ast.walk(node)}
            elif isinstance(node, ast.Constant) and id(node) not in skipped:
                text = str(node.value)
            else:
                continue
            yield f"{path.relative_to(root)}:{node.lineno}", text


def parameters(function: object) -> set[str]:
    declared = inspect.signature(function).parameters.values()
    variadic = any(parameter.kind == parameter.VAR_KEYWORD for parameter in declared)
    return {parameter.name for parameter in declared} | (
        {"group", "covariates"} if variadic else set()
    )


def test_names_and_arguments_that_messages_propose_exist() -> None:
    wrong, calls = [], 0
    for where, text in messages():
        for call in re.finditer(r"\b(?:bayesatk|bk)((?:\.[A-Za-z_]\w*)+)(?:\(([^()]*)\))?", text):
            named, known = bk, True
            for name in call[1][1:].split("."):
                known = known and hasattr(named, name)
                named = getattr(named, name, None)
            known = known or call[1][1:] in {"inspect", "lm_eval", "json"}  # modules, and a file
            arguments = re.findall(r"\b(\w+)=", call[2] or "")
            if not known or (arguments and not parameters(named) >= {*arguments}):
                wrong.append(f"{where}: {call[0]}")
            calls += 1
        for name, call in re.findall(r"(?<![\w.'])([A-Z][a-z]+[A-Z]\w+)\(([^()]*)\)?", text):
            if name in PUBLIC and not re.search(r"{}|^\.\.\.", call):  # a repr
                wrong.append(f"{where}: {name} without its place")
    assert not wrong
    assert calls > 60

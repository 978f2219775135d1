"""Tables as people publish them: what is recognised, what is doubted, and remedies as printed.

Every table is made here; its right answer is counted by hand, or by the line that makes it.
"""

import re
import shlex
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayesatk as bk
from bayesatk.cli.app import app
from tests.io.logs import counts, only, refused, written_json
from tests.io.test_shapes import lines, remedy, text


def csv(folder, header, rows, name="runs.csv"):
    return text(folder / name, "\n".join([header, *(",".join(map(str, row)) for row in rows)]))


def doubted(path, words, **options):
    """Data that are read with a doubt, and the columns that it proposes."""
    with pytest.warns(bk.OutcomeWarning, match=words) as warned:
        data = bk.load(path, **options)
    assert re.search(f"CHECK: .*{words}", data.card())
    return data, {"columns": remedy(str(warned[0].message), "columns")}


def shares(data):
    """Share of successes by system."""
    return dict(zip(data.systems, (data.successes.sum("question") / data.trials.sum("question"))
                    .values.round(3).tolist(), strict=True))  # fmt: skip


# ------------------------------------------------------------------ conditions


@pytest.mark.parametrize(("column", "arms"), [
    ("condition", ("with", "without")), ("agent_type", ("react", "plan")),
    ("regime", ("dense", "sparse")), ("profile", ("a", "b")), ("setup", ("long", "short")),
])  # fmt: skip
def test_conditions_are_seen_in_two_questions_whose_trials_run_on(tmp_path, column, arms):
    """The number of the trial runs on over the arms, which are then no second number."""
    rows = [(f"t{q}", arm, 1 + trial + 3 * place, 1 - place)
            for q in range(2) for place, arm in enumerate(arms) for trial in range(3)]  # fmt: skip
    path = csv(tmp_path, f"task,{column},rep,success", rows)
    data, named = doubted(path, f"differ in column '{column}'")
    assert data.trials.values.tolist() == [[6, 6]]
    assert shares(bk.load(path, **named)) == {arms[0]: 1.0, arms[1]: 0.0}


def test_any_column_that_tells_all_repetitions_apart_is_named(tmp_path):
    rows = [(f"t{q}", prompt, int(prompt == "p1")) for q in range(2) for prompt in ("p1", "p2")]
    _, named = doubted(csv(tmp_path, "task,wording,passed", rows), "differ in column 'wording'")
    assert named == {"columns": {"system": "wording"}}


def test_arms_with_prompts_of_their_own_are_named(tmp_path):
    rows = [(arm, f"{words} {q}", mark) for arm, words, marks in
            (("plain", "Solve", (1, 0, 0)), ("careful", "Think and solve", (1, 1, 1)))
            for q, mark in enumerate(marks)]  # fmt: skip
    path = csv(tmp_path, "scaffold,prompt,correct", rows)
    _, named = doubted(path, "one value of column 'scaffold'")
    message = refused(lambda: bk.load(path, **named), "no two of the 2 systems")
    data = bk.load(path, **named, missing=remedy(message, "missing"))
    assert shares(data) == {"plain": 0.333, "careful": 1.0}


def test_names_of_arms_in_the_column_of_trials_are_conditions(tmp_path):
    rows = [(run, model, f"c{q}", mark) for run, mark in (("plain", 0), ("one-line hint", 1))
            for model in ("m1", "m2") for q in range(3)]  # fmt: skip
    path = csv(tmp_path, "run,model,case_id,correct", rows)
    _, named = doubted(path, "are called 'plain', 'one-line hint' in column 'run'")
    data = bk.load(path, **named)
    assert shares(data) == {"m1 / plain": 0, "m2 / plain": 0,
                            "m1 / one-line hint": 1, "m2 / one-line hint": 1}  # fmt: skip
    numbered = csv(tmp_path, "run,model,case_id,correct", [
        (f"run {1 + (run == 'plain')}", *rest) for run, *rest in rows
    ])  # fmt: skip
    assert "conditions?" not in bk.load(numbered).card()


def test_a_column_that_is_null_everywhere_is_no_column(tmp_path):
    rows = [{"task": q, "arm": arm, "model": None, "passed": arm == "x"}
            for q in "ab" for arm in "xy"]  # fmt: skip
    _, named = doubted(lines(tmp_path / "runs.jsonl", rows), "differ in column 'arm'")
    assert shares(bk.load(tmp_path / "runs.jsonl", **named)) == {"x": 1.0, "y": 0.0}


FACTORS = [(profile, task, seed, harness, int(profile == "careful" or harness == "tools"))
           for profile in ("careful", "hasty") for task in "abc" for seed in range(2)
           for harness in ("basic", "tools")]  # fmt: skip


def test_factorial_designs_are_read_as_composite_systems_or_by_rows(tmp_path):
    path = csv(tmp_path, "profile,task,seed,harness,success", FACTORS)
    message = refused(lambda: bk.load(path), "'profile' and 'harness' are the system")
    data = bk.load(path, columns=remedy(message, "columns"))
    assert shares(data) == {"careful / basic": 1, "careful / tools": 1, "hasty / basic": 0,
                            "hasty / tools": 1}  # fmt: skip
    assert data.trials.values.tolist() == [[2, 2, 2]] * 4
    some = {"where": remedy(message, "where")}
    message = refused(lambda: bk.load(path, **some), "'harness' is the system")
    data = bk.load(path, **some, columns=remedy(message, "columns"))
    assert shares(data) == {"basic": 1, "tools": 1}
    several = bk.load(path, where={"profile": ["hasty", "careful"], "seed": 1},
                      columns={"system": "profile,harness"})  # fmt: skip
    assert several.trials.values.tolist() == [[1, 1, 1]] * 4
    refused(lambda: bk.load(path, where={"profile": "other"}), "where must leave rows")
    refused(lambda: bk.load(path, where={"mood": "x"}), "'mood' is none", "'profile'")


def test_the_shell_reads_composite_systems_and_rows_by_value(tmp_path):
    path = csv(tmp_path, "profile,task,seed,harness,success", FACTORS)

    def run(*options):
        return CliRunner().invoke(
            app, ["convert", str(path), "-o", str(tmp_path / "long.csv"), "-q", *options]
        )  # fmt: skip

    done = CliRunner().invoke(app, ["evaluate", str(path), "-m", "pass@1"])
    assert done.exit_code == 2
    (option,) = re.findall(r"--column system=\S+?(?=[;.]? )", done.stderr)
    assert run(*shlex.split(option)).exit_code == 0
    assert bk.load(tmp_path / "long.csv").systems == [
        "careful / basic", "careful / tools", "hasty / basic", "hasty / tools",
    ]  # fmt: skip
    done = run("--where", "profile=careful", "--column", "system=harness", "--ignore", "seed")
    assert done.exit_code == 0, done.stderr
    assert bk.load(tmp_path / "long.csv").systems == ["basic", "tools"]


# ------------------------------------------------------------------ questions and their trials


@pytest.mark.parametrize(("number", "name"), [
    ("id", "task_name"), ("sample_id", "task_id"), ("uid", "task"), ("id", "vignette"),
])  # fmt: skip
def test_a_number_of_the_row_is_no_question(tmp_path, number, name):
    rows = [(1000 + 4 * q + t, f"q{q}", 1 + t, int(t < q)) for q in range(4) for t in range(4)]
    path = csv(tmp_path, f"{number},{name},attempt,success", rows)
    if name == "vignette":  # no usual name
        _, named = doubted(path, "each value of 'vignette' has 4 rows")
        data = bk.load(path, **named)
    else:
        data = bk.load(path)
    assert only(data) == {f"q{q}": (4 - q, q, 0) for q in range(4)}


@pytest.mark.parametrize("name", ["expected", "expected_output", "reference", "correct_answer",
                                  "label", "ground_truth"])  # fmt: skip
def test_one_text_with_two_right_answers_is_two_questions(tmp_path, name):
    rows = [("m", "Where is X?", "hall", 1), ("m", "Where is X?", "attic", 0)]
    path = csv(tmp_path, f"model,question,{name},correct", rows)
    refused(lambda: bk.load(path), f"differ in column '{name}'", "row 2 and row 3")
    nested = [{"item": {"question": q, name: right}, "correct": mark} for _, q, right, mark in rows]
    path = lines(tmp_path / "runs.jsonl", nested)
    refused(lambda: bk.load(path, columns={"question": "item.question"}), f"'item.{name}'")


def test_ids_that_suites_of_one_system_share_are_refused_and_told_apart(tmp_path):
    for suite in ("alpha", "beta"):
        lines(tmp_path / suite / "results.jsonl", [
            {"state": {"ok": q == 0}, "item": {"item_id": q, "prompt": f"{suite} {q}"}}
            for q in range(2)
        ])  # fmt: skip
    columns = {"question": "item.item_id", "outcome": "state.ok"}
    files = {"m": [tmp_path / suite / "results.jsonl" for suite in ("alpha", "beta")]}
    message = refused(lambda: bk.load(files, columns=columns), "alpha/results", "beta/results")
    start = message.index("if each folder numbers")
    told = remedy(message[start:], "columns")
    assert only(bk.load(files, columns=told)) == {
        "alpha / 0": (0, 1, 0),
        "alpha / 1": (1, 0, 0),
        "beta / 0": (0, 1, 0),
        "beta / 1": (1, 0, 0),
    }
    message = refused(lambda: bk.load(tmp_path, columns=columns), "If each folder is a system")
    systems = columns | remedy(message, "columns")
    refused(lambda: bk.load(tmp_path, columns=systems), "alpha/results", "beta/results")
    one = columns | remedy(message[message.index("if each is a suite") :], "columns")
    assert bk.load({"m": tmp_path}, columns=one).dataset.sizes["question"] == 4


def test_lists_beside_a_numbered_trial_are_no_trials(tmp_path):
    path = lines(tmp_path / "runs.jsonl", [
        {"task": "a", "seed": seed, "success": [0, 0, 1], "solved": 1} for seed in range(2)
    ])  # fmt: skip
    message = refused(lambda: bk.load(path), "a row of one trial must have one outcome")
    frame = pd.read_json(path, lines=True)
    assert "ignore" not in refused(lambda: bk.tally(frame), "leave column 'seed' out\\.")
    data = bk.load(path, columns={"outcome": "solved"})
    assert only(data) == {"a": (0, 2, 0)}
    assert only(bk.load(path, ignore=remedy(message, "ignore"))) == {"a": (4, 2, 0)}


def test_a_question_with_many_times_the_trials_of_others_is_doubted(tmp_path):
    rows = [(f"q{q}", q % 2) for q in range(6) for _ in range(2)] + [("unknown", 0)] * 12
    path = csv(tmp_path, "task,passed", rows)
    assert "CHECK: question 'unknown' of 'system' has 12 trials, and the median question 2" in (
        bk.load(path).card()
    )
    assert "median question" not in bk.load(csv(tmp_path, "task,passed", rows[:14])).card()


def test_groups_of_questions_are_not_taken_for_questions(tmp_path):
    """{"scores": {category: [score of each question]}}: nothing says so but the numbers."""
    groups = {str(n): [0.5, 0.25] * size for n, size in enumerate((18, 6, 16, 35, 1))}
    path = written_json(tmp_path / "runs.json", {"scores": groups})
    options = {"records": "scores", "scores": "numbers"}
    assert (
        "CHECK: no two questions have as many trials (2 to 70)" in bk.load(path, **options).card()
    )
    alike = {name: scores[:6] for name, scores in groups.items()}
    path = written_json(tmp_path / "alike.json", {"scores": alike})
    assert "CHECK" not in bk.load(path, **options).card()


def test_retries_until_success_are_recognised(tmp_path):
    """Observed: first attempts, and what was solved within k attempts; not the exchangeable law."""
    rng = np.random.default_rng(5)
    p = rng.beta(1, 1, 300)
    rows, first, within = [], 0, 0
    for question in range(300):
        for attempt in range(3):
            solved = int(rng.random() < p[question])
            rows.append((f"q{question}", attempt + 1, solved))
            first += solved * (attempt == 0)
            if solved:
                within += 1
                break
    path = csv(tmp_path, "task,attempt,passed", rows)
    data = bk.load(path)
    assert "trials of a question end at its first success" in data.card()
    assert re.search(f"{first / 300:.4f} \\(first attempts\\)", data.card())
    assert "CHECK" not in data.card()
    fit = bk.evaluate(data, "pass@1,2,3", rng=1, difficulty="beta")
    table = bk.table(fit).query("target == 'questions'").set_index("metric")
    assert table.loc["pass@1", "estimate"] == pytest.approx(first / 300)
    assert table.loc["pass@3", "estimate"] == pytest.approx(within / 300)
    assert table.loc["pass@1", "ci_lower"] < p.mean() < table.loc["pass@1", "ci_upper"]
    assert not any("lies outside" in note or "questions, those" in note for note in fit.notes)
    saved = bk.Result(bk.load_result(bk.save(fit, tmp_path / "fit.nc")))
    assert saved.data.stopped.tolist() == [True]
    # Groups, weights and names that are given afterwards count again what is counted already.
    halves = ["one", "other"] * 150
    table = bk.table(bk.evaluate(data, "pass@1", group=halves, rng=1))
    assert table["estimate"].iloc[0] == pytest.approx(first / 300)
    assert bk.tally(data, systems=["solver"]).stopped.tolist() == [True]
    gate = bk.decide.gate(data, data, metric="pass@1", margin=0.2, rng=1)
    assert bk.Result(gate).data.stopped.tolist() == [True, True]
    shuffled = csv(tmp_path, "task,attempt,passed", sorted(rows, key=lambda row: -row[1]))
    assert "first success" in bk.load(shuffled).card()  # by the number, not by the row
    assert (
        "first success" in bk.tally([[1], [0, 1], [0, 1], [0, 0, 1], [0, 0, 0], [0, 0, 1]]).card()
    )
    for marks in ([[1], [0, 1, 1], [0, 0, 1], [0, 0, 1]], [[0, 1], [0, 1], [0, 1], [0, 1], [0, 0]],
                  [[1], [0, 1, 0], [0, 0, 1], [0, 0, 1]], [[1], [0, 1], [0, 0]]):  # fmt: skip
        assert "first success" not in bk.tally(marks).card()


def test_the_order_of_retries_is_no_evidence(tmp_path):
    """By construction the one success is last: neither drift nor trial effects are reported."""
    rows = [("again", f"q{n}", t, int(t == n % 4)) for n in range(40) for t in range(n % 4 + 1)]
    rows += [("fixed", f"q{n}", t, int(t > 1)) for n in range(40) for t in range(4)]
    header = "system,task,attempt,passed"
    own = [row for row in rows if row[0] == "again"]
    report = bk.checks.inspect_source(csv(tmp_path, header, own))
    assert (report.metrics, report.doubts) == (("pass@1,2,4",), ())
    assert "the order of the trials is not tested" in str(report)
    checks = bk.checks.check_trials(pd.DataFrame(rows, columns=header.split(",")))
    assert checks.query("system == 'again'")["check"].tolist() == ["retries"]
    assert "end at its first success" in checks["sentence"].iloc[0]
    assert checks.query("system == 'fixed'")["flagged"].all()  # so are they where trials go on
    both = bk.checks.inspect_source(csv(tmp_path, header, rows))
    assert both.metrics == ("pass@1,2,4",)
    assert {str(doubt).partition(":")[0] for doubt in both.doubts} == {"fixed"}


def test_counts_of_several_systems_side_by_side(tmp_path):
    header = "question,alpha_n_correct,alpha_n_samples,beta_n_correct,beta_n_samples"
    rows = [("q0", 6, 7, 6, 6), ("q1", 1, 6, 0, 4), ("q2", 2, 2, 3, 5)]
    path = csv(tmp_path, header, rows)
    message = refused(lambda: bk.load(path), "Name it: ")
    told = CliRunner().invoke(app, ["doctor", str(path)]).output
    options = re.search(r"(--column successes=\S+ --column trials=\S+?);", " ".join(told.split()))[
        1
    ]
    assert options == ("--column successes=alpha_n_correct,beta_n_correct "
                       "--column trials=alpha_n_samples,beta_n_samples")  # fmt: skip
    named = {"successes": ["alpha_n_correct", "beta_n_correct"],
             "trials": ["alpha_n_samples", "beta_n_samples"]}  # fmt: skip
    assert str(named)[1:-1] in message
    for data in (bk.load(path, columns=named), bk.tally(pd.read_csv(path), columns=named)):
        assert list(map(str, data.systems)) == ["alpha", "beta"]
        assert data.successes.values.tolist() == [[6, 1, 2], [6, 0, 3]]
        assert data.trials.values.tolist() == [[7, 6, 2], [6, 4, 5]]
    shell = CliRunner().invoke(app, ["doctor", str(path), *shlex.split(options)])
    assert "2 systems x 3 questions, 30 trials" in shell.output
    # So are those of a system that never succeeds twice.
    rare = [(question, c, n, min(d, 1), m) for question, c, n, d, m in rows]
    assert str(named)[1:-1] in refused(lambda: bk.load(csv(tmp_path, header, rare)), "Name it: ")
    # One number of trials for all; failures instead of successes; lists that do not fit.
    both = csv(tmp_path, "question,a,b,n", [("q0", 1, 2, 4), ("q1", 3, 0, 5)])
    shared = bk.load(both, columns={"failures": "a,b", "trials": "n"})
    assert shared.successes.values.tolist() == [[3, 2], [2, 5]]
    for wrong in ({"successes": ["a", "b"], "failures": "n"}, {"successes": "n", "trials": "a,b"}):
        refused(lambda columns=wrong: bk.load(both, columns=columns), "as many systems")


@pytest.mark.parametrize(
    ("no", "yes"), [("no", "yes"), ("No", "Yes"), ("0", "1"), ("FAIL", "Pass"), ("wrong", "RIGHT")]
)
def test_common_names_of_columns_and_marks(tmp_path, no, yes):
    rows = [("a", 1, yes), ("a", 2, no), ("a", 3, ""), ("b", 1, yes), ("b", 2, yes)]
    path = csv(tmp_path, "q,trial,exact_match", rows)
    data = bk.load(path, missing="ignore")
    assert only(data) == {"a": (1, 1, 1), "b": (0, 2, 0)}
    assert f"{no} = 0, {yes} = 1" in data.card()
    assert "question = column 'q'" in data.card()
    assert "outcome = column 'exact_match'" in data.card()
    counted = bk.load(csv(tmp_path, "question,n_correct,n_samples", [("a", 6, 7), ("b", 1, 6)]))
    assert only(counted) == {"a": (1, 6, 0), "b": (5, 1, 0)}
    assert "trials = column 'n_samples', successes = column 'n_correct'" in counted.card()
    for other in ("maybe", "YeS"):  # nothing is guessed of others
        refused(lambda mark=other: bk.load(csv(tmp_path, "q,correct", [("a", yes), ("b", mark)])),
                f"{other}' at row 3" if yes != "1" else f"outcome '{other}'")  # fmt: skip


def test_a_column_of_seconds_is_not_silently_better_when_higher(tmp_path):
    rng = np.random.default_rng(3)
    rows = [(system, f"q{q}", t, round(rng.gamma(3, 2), 2)) for system in "ab" for q in range(12)
            for t in range(4)]  # fmt: skip
    path = csv(tmp_path, "system,question,trial,latency_s", rows)
    asked = [str(path), "--column", "outcome=latency_s", "--score", "numbers", "--seed", "1"]
    shell = CliRunner().invoke(app, ["evaluate", *asked])
    assert shell.exit_code == 0
    assert "CHECK: higher scores are taken as better" in shell.output
    assert "if it is: --better lower" in " ".join(shell.output.split())
    assert "max@1" not in shell.output  # the mean
    assert "max@2" in shell.output
    assert len(shell.output.splitlines()) < 60  # no table of 51 levels
    told = CliRunner().invoke(app, ["doctor", *asked[:-2], "--better", "lower"])
    assert "CHECK" not in told.output
    assert "Metrics: mean, min@2,4" in told.output
    for options in ({"success": "score <= 5"}, {"scores": "numbers", "better": "lower"}):
        assert "CHECK" not in bk.load(path, columns={"outcome": "latency_s"}, **options).card()
    table = pd.read_csv(path)
    with pytest.warns(bk.OutcomeWarning, match="better='lower'"):
        bk.tally(table, columns={"outcome": "latency_s"}, scores="numbers")
    scored = table.rename(columns={"latency_s": "score"})
    assert "CHECK" not in bk.tally(scored, scores="numbers").card()


def test_retries_of_one_system_beside_repeated_trials_of_another(tmp_path):
    retries = {f"q{n}": [0] * (n % 3) + [1] for n in range(9)}
    rows = [("again", q, t, mark) for q, marks in retries.items() for t, mark in enumerate(marks)]
    rows += [("fixed", f"q{n}", t, (n + t) % 2) for n in range(9) for t in range(3)]
    data = bk.load(csv(tmp_path, "system,task,attempt,passed", rows))
    assert data.stopped.tolist() == [True, False]
    assert "the trials of a question of 'again' end at its first success" in data.card()
    table = bk.table(bk.evaluate(data, "pass@1,3", rng=1)).query("target == 'questions'")
    found = table.set_index(["system", "metric"])["estimate"]
    assert found["again", "pass@1"] == pytest.approx(3 / 9)
    assert found["again", "pass@3"] == 1.0
    assert found["fixed", "pass@1"] == pytest.approx((5 * 1 + 4 * 2) / 27)
    counted = [(q, len(marks), 1) for q, marks in retries.items()]
    card = bk.load(csv(tmp_path, "task,n,c", counted)).card()
    assert "CHECK: no question of 'system' has two successes" in card
    assert "CHECK" not in bk.load(csv(tmp_path, "task,n,c", [(q, 3, 1) for q in retries])).card()


def test_two_columns_that_number_trials_are_read_together(tmp_path):
    rows = [(task, seed, episode, int(seed == 0)) for task in "ab" for seed in range(3)
            for episode in range(2)]  # fmt: skip
    path = csv(tmp_path, "task,seed,episode,success", rows)
    assert only(bk.load(path)) == {"a": (4, 2, 0), "b": (4, 2, 0)}
    refused(lambda: bk.load(csv(tmp_path, "task,seed,episode,success", rows + rows[:1])),
            "one trial column; several could be it")  # fmt: skip


def test_rows_of_one_task_are_its_trials(tmp_path):
    episodes = [{"episode_id": n, "steps": 9, "done": n % 4 == 0, "return": n / 3}
                for n in range(20)]  # fmt: skip
    path = written_json(tmp_path / "e.json", {"summary": {"episodes": 20}, "episodes": episodes})
    message = refused(lambda: bk.load(path), "Marks are in 'done'", "all rows are trials")
    told = remedy(message[message.index("if all rows") :], "columns")
    assert only(bk.load(path, columns=told)) == {"all rows": (15, 5, 0)}


def test_rows_without_a_question_are_refused_or_counted_on_the_card(tmp_path):
    path = lines(tmp_path / "runs.jsonl", [
        {"task": "a", "passed": 1}, {"task": None, "passed": 0}, {"passed": 0}
    ])  # fmt: skip
    message = refused(lambda: bk.load(path), "'task'", "line 2")
    data = bk.load(path, missing_question=remedy(message, "missing_question"))
    assert only(data) == {"a": (0, 1, 0)}
    assert "rows without a question, left out: 2" in data.card()
    path = csv(tmp_path, "task,passed", [("a", 1), ("", 0)])
    message = refused(lambda: bk.load(path), "row 3 has none")
    data = bk.load(path, missing_question=remedy(message, "missing_question"))
    assert only(data) == {"a": (0, 1, 0)}
    frame = pd.DataFrame({"task": ["a", None], "passed": [1, 0]})
    frame.to_parquet(tmp_path / "runs.parquet")
    message = refused(lambda: bk.load(tmp_path / "runs.parquet"), "row 1 has none")
    drop = remedy(message, "missing_question")
    data = bk.load(tmp_path / "runs.parquet", missing_question=drop)
    assert only(data) == {"a": (0, 1, 0)}
    assert "missing_question" not in refused(lambda: bk.tally(frame), "row 1 has none")


# ------------------------------------------------------------------ outcomes


def test_outcomes_that_the_first_record_lacks_are_missing(tmp_path):
    path = lines(tmp_path / "runs.jsonl", [
        {"task": "a", "attempt": 1, "error": "timeout"}, {"task": "a", "attempt": 2, "passed": 1},
        {"task": "b", "attempt": 1, "passed": 0}, {"task": "b", "attempt": 2, "passed": 1},
    ])  # fmt: skip
    message = refused(lambda: bk.load(path), "1 missing outcomes")
    data = bk.load(path, missing=remedy(message[message.index("missing='wrong'") :], "missing"))
    assert data.successes.values.tolist() == [[1, 1]]
    assert data.trials.values.tolist() == [[2, 2]]


def test_only_columns_of_marks_are_said_to_hold_marks(tmp_path):
    rows = [("a", 1, 0, 1), ("a", 2, 1, 0), ("b", 1, 3, 1)]
    path = csv(tmp_path, "task,run_idx,solved_of_3,verified", rows)
    message = refused(lambda: bk.load(path), "Marks are in 'verified'\\.")
    assert only(bk.load(path, columns=remedy(message, "columns"))) == {
        "a": (1, 1, 0), "b": (0, 1, 0)
    }  # fmt: skip


def test_flags_and_shares_are_not_proposed_as_outcomes(tmp_path):
    """A setting that differs is none, though the marks are all the same; nor is a share of 0."""
    rows = [("m", q, int(q == "b"), True) for q in "abc"]
    path = csv(tmp_path, "model,task,disable_tool_choice,part_correct", rows)
    message = refused(lambda: bk.load(path), "Marks are in 'part_correct'\\.")
    assert only(bk.load(path, columns=remedy(message, "columns")))["a"] == (0, 1, 0)
    path = csv(tmp_path, "split,success_rate,n_episodes", [("near", 0.0, 10.0), ("far", 0.0, 10.0)])
    message = refused(lambda: bk.load(path), "Counts or rates may be in 'success_rate', 'n_epi")
    told = remedy(message, "columns") | {"question": "split"}
    assert only(bk.load(path, columns=told)) == {"near": (10, 0, 0), "far": (10, 0, 0)}
    path = csv(tmp_path, "task,generated_ok", [("a", 1), ("b", 0)])  # a mark, and no rate
    refused(lambda: bk.load(path), "Marks are in 'generated_ok'")
    path = csv(tmp_path, "challenge,times_passed,times_failed", [("a", 3, 1), ("b", 2, 2)])
    message = refused(lambda: bk.load(path), "'times_passed', 'times_failed'")
    told = remedy(message, "columns") | {"question": "challenge"}
    assert only(bk.load(path, columns=told)) == {"a": (1, 3, 0), "b": (2, 2, 0)}
    path = csv(tmp_path, "task,won,score", [("a", 1, 7.5), ("b", 0, 2.5)])
    assert "outcome = column 'score'" in bk.load(path, scores="numbers").card()
    path = csv(tmp_path, "task,win,score,outcome", [("a", True, 7.5, "out"), ("b", True, 2.5, "x")])
    refused(lambda: bk.load(path), "several could be it: \\['score', 'outcome'\\]", "are in 'win'")


def test_one_of_two_columns_of_marks_is_not_chosen_unless_they_agree(tmp_path) -> None:
    path = csv(tmp_path, "task,passed,solved", [("a", 1, 0), ("b", 1, 1)])
    message = refused(lambda: bk.load(path), "several could be it: \\['passed', 'solved'\\]")
    told = remedy(message, "columns")  # counts of wrong, right and missing
    assert only(bk.load(path, columns=told)) == {"a": (0, 1, 0), "b": (0, 1, 0)}
    assert only(bk.load(path, columns={"outcome": "solved"})) == {"a": (1, 0, 0), "b": (0, 1, 0)}
    path = csv(tmp_path, "task,passed,solved", [("a", 1, 1), ("b", 0, 0)])
    assert "outcome = column 'passed'" in bk.load(path).card()


@pytest.mark.parametrize(("name", "values"), [
    ("hallucination_rate", (0.5, 0.25)), ("max_rate", (0.86, 1.2)), ("error_rate", (0.0, 0.5)),
    ("episode_len", (512, 500)), ("success_seconds", (30, 80)), ("evidence_count", (53, 30)),
])  # fmt: skip
def test_what_is_measured_is_not_proposed_as_counts(tmp_path, name, values):
    path = csv(tmp_path, f"target,{name},solved_total,n_items",
               [("a", values[0], 80, 90), ("b", values[1], 70, 90)])  # fmt: skip
    assert name not in refused(lambda: bk.load(path), "one outcome").partition("Name them")[2]


def test_accuracy_and_the_number_that_it_is_of(tmp_path):
    rows = [("bert", "in", 4462, 0.99712, 0.99529), ("bert", "out", 304, 0.99712, 0.51645)]
    path = csv(tmp_path, "model,eval_set,n_eval,best_val_accuracy,accuracy", rows)
    told = remedy(refused(lambda: bk.load(path), "'accuracy', 'n_eval'"), "columns")
    assert told == {"question": "FILL", "rate": "accuracy", "trials": "n_eval"}
    data = bk.load(path, columns=told | {"question": "eval_set"})
    assert only(data) == {"in": (21, 4441, 0), "out": (147, 157, 0)}


def test_ids_that_come_more_than_once_are_proposed_as_questions(tmp_path):
    rows = [(f"r{q}{arm}", f"maze{q}", arm, q % 2) for q in range(3) for arm in "AB"]
    path = csv(tmp_path, "run_id,maze_id,agent_type,success", rows)
    message = refused(lambda: bk.load(path), "Ids that come more than once are in 'maze_id'")
    _, named = doubted(path, "'agent_type'", columns=remedy(message, "columns"))
    assert shares(bk.load(path, columns={"question": "maze_id"} | named["columns"])) == {
        "A": 0.333, "B": 0.333
    }  # fmt: skip


def test_columns_of_marks_beside_a_question_may_be_systems(tmp_path):
    """Other columns of numbers, such as times, are none."""
    rows = [(f"t{q}", int(q < 1), True, 0.25 + q) for q in range(3)]
    path = csv(tmp_path, "task_id,base_correct,tuned_correct,base_time", rows)
    message = refused(lambda: bk.load(path), "if each column of marks is a system")
    told = remedy(message[message.index("wide=") :], "columns")
    data = bk.load(path, wide=remedy(message, "wide"), columns=told)
    assert shares(data) == {"base_correct": 0.333, "tuned_correct": 1.0}
    done = CliRunner().invoke(app, ["doctor", str(path)])
    option = re.search(r"(--wide) with (--column outcome=\S+?);", " ".join(done.stdout.split()))
    assert option
    words = [*option[1].split(), *option[2].split()]
    done = CliRunner().invoke(app, ["convert", str(path), "-o", str(tmp_path / "long.csv"), *words])
    assert done.exit_code == 0, done.stderr
    assert bk.load(tmp_path / "long.csv").systems == ["base_correct", "tuned_correct"]
    frame = pd.read_csv(path)
    assert "wide" not in refused(lambda: bk.tally(frame), "one outcome column")


def test_objects_with_the_same_marks_may_be_systems(tmp_path):
    rows = [{"id": q, **{name: {"em": int(q < n), "f1": 1.0, "hops": n} for n, name in
                         enumerate(("once", "twice"), start=1)}} for q in range(3)]  # fmt: skip
    path = lines(tmp_path / "runs.jsonl", rows)
    message = refused(lambda: bk.load(path), "if each object is a system")
    told = remedy(message[message.index("wide=") :], "columns")
    data = bk.load(path, wide=remedy(message, "wide"), columns=told)
    assert shares(data) == {"once": 0.333, "twice": 0.667}


def test_runs_again_under_the_number_of_a_failed_one(tmp_path):
    """Arms are named though they do not tell all rows apart; a time is no number of a trial."""
    rows = [(arm, q, t, 1, 10.5 * t + n) for n, arm in enumerate("AB") for q in "xy"
            for t in range(3)]  # fmt: skip
    rows.insert(0, ("A", "x", 0, 0, 0.54))
    path = csv(tmp_path, "arm,task,trial,success,wall_sec", rows)
    message = refused(lambda: bk.load(path), "if 'arm' is the system, say so")
    assert "wall_sec" not in message
    named = remedy(message, "columns")
    message = refused(lambda: bk.load(path, columns=named), "if every row is a trial of its own")
    data = bk.load(path, columns=named, ignore=remedy(message, "ignore"))
    assert counts(data)["A"] == {"x": (1, 3, 0), "y": (0, 3, 0)}


def test_rows_of_one_question_with_a_column_of_few_values(tmp_path):
    """It was a traceback; and conditions of it are named where trials have numbers."""
    rows = [(mode, gap, t, True) for mode in "AB" for gap in (100, 500) for t in range(3)]
    path = csv(tmp_path, "mode,gap_ms,repetition,output_correct", rows)
    told = {"outcome": "output_correct", "question": "(one)"}
    message = refused(lambda: bk.load(path, columns=told), "'mode' and 'gap_ms' are the system")
    told |= remedy(message, "columns")
    assert bk.load(path, columns=told).trials.values.tolist() == [[3]] * 4


def test_counts_and_constants_are_no_marks(tmp_path):
    rows = [(f"t{q}", int(q < 2), 22 - 6 * (q > 1), 0, True) for q in range(3)]
    path = csv(tmp_path, "task,reward,passed,failed,done", rows)
    assert only(bk.load(path)) == {"t0": (0, 1, 0), "t1": (0, 1, 0), "t2": (1, 0, 0)}
    path = csv(tmp_path, "task,verdict,exit_code,energy", [("a", 1, 0, 0.0), ("b", 0, 0, 0.0)])
    refused(lambda: bk.load(path), "Marks are in 'verdict'\\.")
    path = csv(tmp_path, "task,model,n,accuracy", [("a", "m", 30, 0.5), ("b", "m", 30, 0.1)])
    message = refused(lambda: bk.load(path), "may be in 'n', 'accuracy'|may be in 'accuracy', 'n'")
    assert only(bk.load(path, columns=remedy(message, "columns"))) == {
        "a": (15, 15, 0), "b": (27, 3, 0)
    }  # fmt: skip
    path = csv(tmp_path, "trial,condition,success", [(1, "a", ""), (2, "a", "")])
    refused(lambda: bk.load(path), "nothing is in 'success'")


def test_documents_whose_keys_are_questions(tmp_path):
    path = written_json(tmp_path / "l.json", {"scored": {"q0": [True, True, False], "q1": [False]},
                                              "pass_at_1": 33.3})  # fmt: skip
    message = refused(lambda: bk.load(path), "arrays in 'scored'")
    data = bk.load(path, records=remedy(message, "records"))
    assert only(data) == {"q0": (1, 2, 0), "q1": (1, 0, 0)}
    path = written_json(tmp_path / "o.json", {
        f"q{q}": {"query": "x", "summary": {"reward": float(q)}} for q in range(2)
    })  # fmt: skip
    message = refused(lambda: bk.load(path), "Marks are in 'summary.reward'")
    assert only(bk.load(path, columns=remedy(message, "columns"))) == {
        "q0": (1, 0, 0), "q1": (0, 1, 0)
    }  # fmt: skip
    path = written_json(tmp_path / "m.json", {"a": [1, 0], "b": [1, 1, 1]})
    assert only(bk.load(path)) == {"a": (1, 1, 0), "b": (0, 3, 0)}


def test_lists_of_resolved_ids(tmp_path):
    """The experiments repository of SWE-bench: ids by what became of each."""
    folder = tmp_path / "20240402_agent"
    folder.mkdir()
    ids = {"no_generation": ["o__a-3"], "generated": ["o__a-1", "o__a-2"], "no_logs": [],
           "applied": ["o__a-1", "o__a-2"], "resolved": ["o__a-1"]}  # fmt: skip
    path = written_json(folder / "results.json", ids)
    with pytest.warns(bk.OutcomeWarning, match="1 of 3 trials have an empty output"):
        data = bk.load(path)
    assert counts(data) == {"20240402_agent": {"o__a-1": (0, 1, 0), "o__a-2": (1, 0, 0),
                                               "o__a-3": (1, 0, 0)}}  # fmt: skip
    gaps = bk.load(path, empty_output="missing", missing="ignore")
    assert only(gaps)["o__a-3"] == (0, 0, 1)
    path = written_json(folder / "mine.json", {"resolved": ["x-1"], "unresolved": ["x-2", "x-3"]})
    assert only(bk.load(path)) == {"x-1": (0, 1, 0), "x-2": (1, 0, 0), "x-3": (1, 0, 0)}


def test_counts_and_rates_are_proposed_and_read(tmp_path):
    path = csv(tmp_path, "Test,NumFailingRuns,NumPassingRuns", [("t1", 0, 100), ("t2", 47, 53)])
    message = refused(lambda: bk.load(path), "Counts or rates may be in")
    told = remedy(message, "columns")
    assert told == {"question": "FILL", "failures": "NumFailingRuns",
                    "successes": "NumPassingRuns"}  # fmt: skip
    assert only(bk.load(path, columns=told | {"question": "Test"})) == {
        "t1": (0, 100, 0), "t2": (47, 53, 0)
    }  # fmt: skip
    rows = [("a", "t1", 30, 0.1), ("a", "t2", 20, 0.5), ("b", "t1", 30, 0.9), ("b", "t2", 20, 1.0)]
    path = csv(tmp_path, "agent,task,episodes,success_rate", rows)
    message = refused(lambda: bk.load(path), "'success_rate', 'episodes'")
    assert counts(bk.load(path, columns=remedy(message, "columns"))) == {
        "a": {"t1": (27, 3, 0), "t2": (10, 10, 0)}, "b": {"t1": (3, 27, 0), "t2": (0, 20, 0)}
    }  # fmt: skip


def test_systems_without_a_common_question_are_refused_once(tmp_path):
    rows = [("a", "q1", 1), ("a", "q1", 0), ("b", "q2", 1), ("b", "q2", 1)]
    path = csv(tmp_path, "system,question,correct", rows)
    message = refused(lambda: bk.load(path), "no two of the 2 systems tried the same question")
    assert "cannot be compared" in message
    assert bk.load(path, missing="ignore").trials.sum() == 4
    refused(lambda: bk.load(csv(tmp_path, "system,question,correct", [*rows, ("b", "q1", 1)])),
            "system 'a', question 'q2' has no trials")  # fmt: skip


def test_words_and_trials_side_by_side_are_proposed(tmp_path):
    rows = [("a", "t1", "Pass"), ("a", "t2", "FAIL"), ("b", "t1", "Pass"), ("b", "t2", "Pass")]
    path = csv(tmp_path, "model,task,grade_of_it", rows)
    told = remedy(refused(lambda: bk.load(path), "Marks are in 'grade_of_it'"), "columns")
    assert bk.load(path, columns=told).successes.values.tolist() == [[1, 0], [1, 1]]
    rows = [("a", "t1", 1, 0, 1), ("a", "t2", 0, 1, 1), ("b", "t1", 0, 0, 1), ("b", "t2", 1, 1, 1)]
    path = csv(tmp_path, "model,task,att1,att2,att3", rows)
    told = remedy(refused(lambda: bk.load(path), "Marks are in"), "columns")
    assert told == {"outcome": ["att1", "att2", "att3"]}
    assert bk.load(path, columns=told).successes.values.tolist() == [[2, 2], [1, 3]]


def test_several_kinds_of_wrong_are_wrong(tmp_path):
    rows = [("a", "t1", "True"), ("a", "t2", "timeout"), ("b", "t1", "False"), ("b", "t2", "True")]
    path = csv(tmp_path, "model,task,correct", rows)
    data = bk.load(path, scores={0: 0, 1: 1, "timeout": 0})
    assert bk.checks.inspect_source(path, scores={0: 0, 1: 1, "timeout": 0}).metrics == ("pass@1",)
    fit = bk.evaluate(data, "pass@1", rng=1, draws=10)
    assert fit["observed_data"]["successes"].values.tolist() == [[1, 0], [0, 1]]


def test_tries_are_trials(tmp_path):
    rows = [("a", "t1", 3, 5), ("a", "t2", 4, 5), ("b", "t1", 0, 5), ("b", "t2", 5, 5)]
    path = csv(tmp_path, "model,task,passes,tries", rows)
    told = remedy(refused(lambda: bk.load(path), "Counts or rates may be in"), "columns")
    assert bk.load(path, columns=told).successes.values.tolist() == [[3, 4], [0, 5]]


def test_wide_tables_of_rates(tmp_path):
    path = csv(tmp_path, "task,direct,planning", [("t0", 50, 55), ("t1", 35, 40), ("t2", 100, 0)])
    message = refused(lambda: bk.load(path, wide=True), "shares or percentages of a number of")
    told = remedy(message, "columns") | {"trials": 20}
    assert counts(bk.load(path, columns=told)) == {
        "direct": {"t0": (10, 10, 0), "t1": (13, 7, 0), "t2": (0, 20, 0)},
        "planning": {"t0": (9, 11, 0), "t1": (12, 8, 0), "t2": (20, 0, 0)},
    }
    path = csv(tmp_path, "task,n_runs,direct,planning", [("t0", 4, 0.5, 0.25), ("t1", 2, 1, 0.5)])
    told = {"rate": ["direct", "planning"], "trials": "n_runs"}
    assert counts(bk.load(path, columns=told)) == {
        "direct": {"t0": (2, 2, 0), "t1": (0, 2, 0)},
        "planning": {"t0": (3, 1, 0), "t1": (1, 1, 0)},
    }


def test_what_systems_answered_makes_no_file_unreadable(tmp_path):
    rows = [{"id": 1, "answer": "4", "outcome": 1}, {"id": 1, "answer": "5", "outcome": 0}]
    path = lines(tmp_path / "runs.jsonl", rows)
    data, _ = doubted(path, "column 'answer' differs between the trials")
    assert only(data) == {1: (1, 1, 0)}
    quiet = bk.load(path, ignore=["answer"])
    assert "CHECK" not in quiet.card()
    assert "answers" in bk.load(path, columns={"answer": "answer"}).card()
    refused(lambda: bk.load(path, ignore=["anwser"]), "'anwser' is none")


def test_text_marks_of_json_and_semicolons_are_read(tmp_path):
    path = lines(tmp_path / "t.jsonl", [{"id": "a", "ok": "1"}, {"id": "a", "ok": "0"}])
    assert only(bk.load(path, columns={"outcome": "ok"})) == {"a": (1, 1, 0)}
    path = text(tmp_path / "t.csv", "task;trial;passed\na;1;1\na;2;0\n")
    assert only(bk.load(path)) == {"a": (1, 1, 0)}


def test_one_error_names_all_that_is_not_clear(tmp_path):
    path = csv(tmp_path, "alpha,beta,gamma", [("x", "y", 0.5)])
    refused(lambda: bk.load(path), "one outcome column", "and one question column",
            "columns=\\{'outcome': \\.\\.\\., 'question': \\.\\.\\.\\}")  # fmt: skip


def test_a_group_that_is_called_as_an_outcome_hides_none(tmp_path):
    path = csv(tmp_path, "task,outcome", [("a", 1), ("a", 1), ("b", 0)])
    data = bk.load(path, group="outcome")
    assert only(data) == {"a": (0, 2, 0), "b": (1, 0, 0)}


def test_numbers_do_not_depend_on_the_order_of_rows(tmp_path):
    """More numbers than levels: each is rounded to one of two, whatever the order of rows."""
    rows = [(f"q{q:02}", trial, round((q * 37 + trial * 101) % 997 / 997, 4))
            for q in range(40) for trial in range(5)]  # fmt: skip
    tables = [rows, rows[::-1], sorted(rows, key=lambda row: row[2])]
    found = []
    for number, table in enumerate(tables):
        data = bk.load(csv(tmp_path, "task,trial,score", table, f"{number}.csv"), scores="numbers")
        found.append(data.dataset["count"].sortby("question").values.tolist())
    assert found[0] == found[1] == found[2]


def test_doctor_says_how_many_rows_it_read(tmp_path):
    path = text(tmp_path / "long.csv", "task,passed\n" + "a,1\n" * 30_000)
    assert "by the first 20000 rows" in str(bk.checks.inspect_source(path))


def test_what_was_handled_stays_so(tmp_path):
    rows = [{"task": q, "passed": 1} for q in "ab"]
    path = lines(tmp_path / "late.jsonl", [*rows, *({**row, "model": "B"} for row in rows)])
    refused(lambda: bk.load(path), "'model' must identify the system of every row; line 1")
    rows = [(q, judge, t, t % 2) for q in "ab" for judge in ("x", "y") for t in range(2)]
    path = csv(tmp_path, "case,judge,attempt,correct", rows)
    message = refused(lambda: bk.load(path), "'judge' is the system")
    assert bk.load(path, columns=remedy(message, "columns")).systems == ["x", "y"]
    path = csv(tmp_path, "id,task,success", [(n, f"t{n // 3}", n % 2) for n in range(6)])
    refused(lambda: bk.load(path), "several could be it: \\['id', 'task'\\]")
    path = csv(tmp_path, "x,o,winner", [("A", "B", "X"), ("B", "A", "draw")])
    refused(lambda: bk.load(path), "one outcome column", "one question column")
    path = written_json(tmp_path / "log.json", {"task": "push", "metrics": {"episodes": [
        {"seed": 7 + n, "success": n > 0} for n in range(3)
    ]}})  # fmt: skip
    message = refused(lambda: bk.load(path), "arrays in 'metrics.episodes'")
    records = remedy(message, "records")
    message = refused(lambda: bk.load(path, records=records), "one question column")
    told = remedy(message[message.index("if all rows") :], "columns")
    assert only(bk.load(path, records=records, columns=told)) == {"all rows": (1, 2, 0)}


def test_convert_of_a_table_without_rows_is_one_line(tmp_path):
    empty = text(tmp_path / "e.csv", "task,trial,passed\n")
    done = CliRunner().invoke(app, ["convert", str(empty), "-o", str(tmp_path / "o.csv")])
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert "must have rows" in done.stderr


# ------------------------------------------------------------------ arguments and pages


@pytest.mark.parametrize(("name", "nearest"), [("skorer", "scorer"), ("covariate", "covariates"),
                                               ("column", "columns"), ("zzz", "")])  # fmt: skip
def test_an_unknown_argument_is_one_line_with_the_nearest_name(tmp_path, name, nearest):
    path = csv(tmp_path, "task,passed", [("a", 1)])
    for call in (lambda: bk.load(path, **{name: 1}),
                 lambda: bk.convert(path, tmp_path / "o.csv", **{name: 1})):  # fmt: skip
        with pytest.raises(TypeError) as error:
            call()
        message = str(error.value)
        assert message.startswith(f"{name} is no argument of this function. ")
        assert ("Did you mean" in message) == bool(nearest)
        assert not nearest or f"Did you mean {nearest}?" in message
        assert "\n" not in message


def test_the_options_of_tables_run_as_they_are_on_the_page(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "logs.md").read_text(encoding="utf8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (block,) = (block for block in blocks if "where=" in block)
    arms = [(p, h) for p in ("careful", "hasty") for h in ("plain", "tool")]
    rows = [(*arm, q, 2 * place + t, "xy"[t], int(q == "a")) for place, arm in enumerate(arms)
            for q in "ab" for t in range(2)]  # fmt: skip
    csv(tmp_path, "profile,harness,task,attempt,answer,passed", rows)
    for suite in ("easy", "hard"):
        (tmp_path / "suites" / suite).mkdir(parents=True)
        csv(tmp_path / "suites" / suite, "item_id,passed", [(1, 0), (2, int(suite == "easy"))])
    monkeypatch.chdir(tmp_path)
    found = []
    load = SimpleNamespace(load=lambda *args, **options: found.append(bk.load(*args, **options)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bk.OutcomeWarning)
        exec(block, {"bk": load})
    composite, careful, dropped, suites = found
    assert composite.systems == [" / ".join(arm) for arm in arms]
    assert composite.trials.values.tolist() == [[2, 2]] * 4
    assert careful.trials.values.tolist() == [[4, 4]]
    assert dropped.trials.values.tolist() == [[8, 8]]
    assert "'answer'" not in dropped.card()
    assert counts(suites)["m"] == {"easy / 1": (1, 0, 0), "easy / 2": (0, 1, 0),
                                   "hard / 1": (1, 0, 0), "hard / 2": (1, 0, 0)}  # fmt: skip


def test_earlier_trials_that_lack_some_questions_are_noted(tmp_path):
    rows = [(f"q{q}", t, (q + t) % 2) for q in range(6) for t in range(3)]
    now = csv(tmp_path, "task,attempt,passed", rows, "now.csv")
    earlier = csv(tmp_path, "task,attempt,passed", rows[:9], "earlier.csv")
    fit = bk.evaluate(bk.load(now), "pass@1", prior_trials=bk.load(earlier), rng=1)
    assert any("3 of 6 questions have none (first: 'q3')" in note for note in fit.notes)
    whole = bk.evaluate(bk.load(now), "pass@1", prior_trials=bk.load(now), rng=1)
    assert not any("questions have none" in note for note in whole.notes)
    command = ["evaluate", str(now), "-m", "pass@1", "--seed", "1", "--prior-trials", str(earlier)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.stderr
    assert "3 of 6 questions have none" in " ".join(done.stdout.split())
    mean = bk.table(fit).query("target == 'questions'")["mean"].iloc[0]
    assert f"{mean:.3f}"[1:] in done.stdout


def test_a_misspelt_column_is_answered_with_the_nearest(tmp_path) -> None:
    path = csv(tmp_path, "task,passed,domain", [("a", 1, "x"), ("b", 0, "y")])
    refused(lambda: bk.load(path, group="doman"), "Is 'doman' meant as 'domain'")

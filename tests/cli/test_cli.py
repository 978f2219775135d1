"""The command line: tables, JSON, files, exit codes, one-line errors."""

import json
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.main import get_command

import bayesatk as bk
from bayesatk._tools.messages import Argument, Message
from bayesatk.cli.app import app
from bayesatk.cli.remedies import keep_typed, with_commands
from tests.cli.shell import refused, run, succeeded

LOGS = Path(__file__).parents[1] / "logs"
RUNS = "model,task,trial,passed\n" + "".join(
    f"{model},{task},{trial},{int((trial * task + len(model)) % 3 > 0)}\n"
    for model in ("base", "tuned!")
    for task in range(6)
    for trial in range(3)
)
COMMANDS = get_command(app).commands
SEED = ("-m", "pass@1", "--seed", 1)


@pytest.fixture
def runs(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(RUNS)
    return path


@pytest.fixture
def table(tmp_path):
    """A function that writes a table with a header and rows."""

    def write(header, rows, name="table.csv"):
        path = tmp_path / name
        path.write_text("\n".join([header, *rows]) + "\n")
        return path

    return write


def tables_of(*arguments):
    """The tables that a command prints as JSON."""
    return json.loads(succeeded(*arguments, "--json"))["tables"]


# ------------------------------------------------------------------ what is printed and saved


def test_evaluate_prints_a_card_and_a_table_or_the_table_alone(runs) -> None:
    printed = succeeded("evaluate", runs, "-m", "pass@1,4", "--seed", 1)
    for words in ("2 systems x 6 questions, 36 trials", "tuned!", "pass@4", "like these", "k>n"):
        assert words in printed
    quiet = succeeded("evaluate", runs, "-m", "bayes", "-q", "--pooling", "none", "--seed", 1)
    assert "Outcomes" not in quiet
    assert "bayes" in quiet


def test_json_has_the_numbers_that_are_saved(runs, tmp_path) -> None:
    path = tmp_path / "fit.nc"
    asked = ("evaluate", runs, "-m", "pass@1 pass^2", "--json", "-o", path, "--seed", 1)
    answer = json.loads(succeeded(*asked))
    fit = bk.load_result(path)
    assert answer["provenance"]["pooling"] == bk.Result.of(fit).pooling == "partial"
    assert len(answer["tables"]["results"]) == 8
    exact = fit["closed_form"]["pass_at_k"].sel(system="base", k=1, target="questions")
    mean = answer["tables"]["results"][0]["mean"]
    assert mean == pytest.approx(float(exact.sel(statistic="mean")), abs=1e-14)


@pytest.mark.parametrize("ending", ["nc", "json", "csv"])
def test_results_are_saved_by_the_ending_of_the_name(runs, tmp_path, ending) -> None:
    path = tmp_path / f"fit.{ending}"
    assert f"Saved {path}" in run("evaluate", runs, *SEED, "-o", path).output.replace("\n", "")
    assert path.stat().st_size > 500
    if ending == "nc":
        cited = run("cite", path).output
        assert "@misc{chen2021evaluating," in cited
        assert "rubin1981" not in cited
        assert run("cite").output.count("\n@") >= 12


def test_metrics_default_to_what_the_trials_allow(runs) -> None:
    rows = tables_of("evaluate", runs, "--pooling", "complete", "--seed", 1)["results"]
    assert {row["metric"] for row in rows} == {"pass@1", "pass@2", "pass^2"}  # of three trials


def test_costs_of_a_column_are_printed_and_compared(table) -> None:
    header, *rows = RUNS.splitlines()
    paid = [f"{row},{0.01 * (number % 5 + 1):.2f}" for number, row in enumerate(rows)]
    path = table(f"{header},usd", paid)
    options = ("--cost", "usd", "--cost-unit", "USD", "--difficulty", "beta", "--seed", 1)
    printed = succeeded("compare", path, "-m", "pass@1", *options)
    for words in ("mean 0.02944 USD", "cost/success", "in USD; lower is better"):
        assert words in printed
    printed = run("compare", path, "-m", "cost/success", *options).output
    assert "cost/success: the expected" in printed
    assert not re.search(" mean  |cost: the expected|tier", printed)
    metrics = {row["metric"] for row in tables_of("evaluate", path, *options)["results"]}
    assert metrics > {"cost", "cost/success"}
    assert "--missing-cost" not in succeeded("doctor", path)
    assert "Read them: --cost usd" in refused("evaluate", path, "-m", "cost")
    assert "dollars" in refused("evaluate", path, "--cost", "dollars")


def test_compare_and_leaderboard_print_sentences_and_ranks(runs) -> None:
    printed = succeeded("compare", runs, *SEED)
    for words in ("P(better)", "like these", "on the same 6 questions"):
        assert words in printed
    rows = tables_of("compare", runs, *SEED)["comparison"]
    assert len(rows) == 2
    assert rows[0]["monte_carlo_error"] < 0.01
    printed = succeeded("leaderboard", runs, *SEED)
    for words in ("pass@1: systems ranked on these questions", "P(best)", "tier"):
        assert words in printed


@pytest.mark.long
def test_many_systems_are_ranked_and_pairs_are_printed_when_asked_for(table, tmp_path) -> None:
    rows = [f"{s},{q},{int((7 * s + 3 * q) % 11 > s)}" for s in range(5) for q in range(8)]
    path = table("system,task,passed", rows)
    printed = succeeded("compare", path, *SEED)
    assert "systems ranked on questions like these" in printed
    assert "P(better)" not in printed
    ranked = tables_of("compare", path, *SEED)
    assert len(ranked["leaderboard"]) == 10
    assert "comparison" not in ranked
    saved = tmp_path / "kept.nc"
    printed = succeeded("compare", path, *SEED, "--pairs", "-o", saved)
    assert "P(better)" in printed
    assert "Tiers in" not in printed
    again = bk.load_result(saved)
    assert bk.table(again, "leaderboard").to_dict("records") == ranked["leaderboard"]
    assert len(bk.table(again, "comparison")) == 20
    assert "P(in rope)" in succeeded("compare", path, *SEED, "--rope", 0.1)
    assert "--rope must be smaller than 1" in refused("compare", path, *SEED, "--rope", 5)


def test_systems_with_gaps_are_compared_on_what_they_share(table, tmp_path) -> None:
    options = (*SEED, "--missing", "ignore", "--pooling", "none")
    page = tmp_path / "r.html"
    path = table("system,task,passed", ["a,x,1", "a,y,0", "a,z,1", "b,x,1", "b,y,1"])
    shared = "on the same 2 questions (1 trial each) of 3, those that both tried"
    assert shared in succeeded("compare", path, *options)
    succeeded("report", path, *options, "-o", page)
    assert shared in page.read_text()
    assert "that every system tried: 2 of 3" in succeeded("compare", path, *options, "--shared")
    path = table("system,task,passed", ["a,x,1", "a,y,0", "b,x,1", "b,y,1", "c,z,1"])
    assert "No question was tried by all systems." in succeeded("compare", path, *options)
    tables = tables_of("compare", path, *options)
    assert {row["system"] for row in tables["comparison"]} <= {"a", "b"}
    assert "ranks" not in tables
    succeeded("report", path, *options, "-o", page)
    assert ">nan" not in page.read_text().lower()
    path = table("system,task,passed", ["a,x,1", "b,y,1"])
    assert "two systems that tried the same question" in refused("compare", path, *options)
    succeeded("report", path, *options, "-o", page)
    assert "is ahead of" not in page.read_text()


def test_long_names_fold_and_numbers_stay_whole(table) -> None:
    names = [f"provider/a-rather-long-model-name-{number}-instruct" for number in range(2)]
    rows = [f"{name},{task},{(task + i) % 2}" for i, name in enumerate(names) for task in range(6)]
    printed = run("compare", table("system,task,passed", rows), *SEED).output
    assert "\u2026" not in printed
    assert all(name in printed for name in names)


def test_warnings_are_lines_on_standard_error() -> None:
    path = LOGS / "inspect/empty.eval"
    done = run("evaluate", path, *SEED, "--json")
    assert done.stderr.startswith("bayesatk: warning: 9 of 24 trials have an empty output")
    assert json.loads(done.stdout)["tables"]["results"]
    lines = run("evaluate", path, *SEED, "--prior-trials", path).stderr.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("bayesatk: warning: 9 of 24 trials") for line in lines)
    done = run("evaluate", path, "-m", "pass@1", "--empty-output", "missing", "--missing", "ignore")
    assert (done.exit_code, done.stderr) == (0, "")


def test_doubts_on_the_card_name_options_of_the_shell(table) -> None:
    rows = [f"a,{q},{arm},{(q + len(arm)) % 2}" for q in (1, 2, 3) for arm in ("x", "yy")]
    path = table("system,question,scaffold,outcome", rows)
    printed = succeeded("evaluate", path, "-m", "pass@1", "--pooling", "none")
    assert "CHECK: the rows" in printed
    assert "columns=" not in printed
    report = succeeded("doctor", path)
    for text in (printed, report):
        assert text.count("--column system=system,scaffold") == 1
    assert "CHECK" not in report  # said once, under "Look at"


def test_a_remedy_is_the_whole_command(tmp_path, monkeypatch) -> None:
    """What was typed stays, but for what a remedy contradicts; each command can be pasted."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my runs.csv").write_text("q,a b,c\nx,1,0\ny,0,1\nz,1,1\n")
    done = run("evaluate", "my runs.csv", "-m", "pass@1", "--column", "outcome=d")
    assert "no column 'd'" in done.stderr
    lines = run("evaluate", "my runs.csv", "-m", "pass@1").stderr.splitlines()
    assert lines[1] == "1. If each column of marks is a system:"
    assert lines[2] == (
        "   bayesatk evaluate 'my runs.csv' -m pass@1 --wide --column 'outcome=a b,c'"
    )
    assert lines[3::2] == ["2. If each is a trial:"]
    for line in lines[2::2]:
        assert run(*shlex.split(line)[1:]).exit_code == 0, line
    (tmp_path / "s.csv").write_text("q,score\nx,0.5\ny,1\n")
    (line,) = (
        line
        for line in run("doctor", "s.csv", "--score", "0=0", "--score", "1=1").stdout.splitlines()
        if line.endswith(" numbers")
    )
    assert line == "   bayesatk doctor s.csv --score numbers"


def test_doctor_takes_the_options_that_it_proposes(table) -> None:
    rows = ["a,q1,0.9", "a,q2,", "b,q1,0.2", "b,q2,0.7"]
    path = table("system,question,outcome", rows)
    options = ("--success", "score >= 0.5", "--missing", "ignore")
    following = succeeded("doctor", path, *options).splitlines()[-1]
    assert following.count("--missing ignore") == 1
    assert "--success 'score >= 0.5'" in following
    (command,) = re.findall("Next: bayesatk (.*)", following)
    assert "2 systems x 2 questions, 3 trials" in succeeded(*shlex.split(command), *SEED)


def test_doctor_says_of_missing_outcomes_what_evaluate_says(table) -> None:
    path = table("system,question,outcome", ["a,q1,1", "a,q2,", "b,q1,0", "b,q2,1"])
    report, refusal = succeeded("doctor", path), refused("evaluate", path, "-m", "pass@1")
    for policy in ("ignore", "wrong", "right"):
        assert f"--missing {policy}" in report
        assert f"--missing {policy}" in refusal


def test_a_column_that_is_to_be_ignored_keeps_no_role(table) -> None:
    rows = ["a,0,1,x", "a,0,0,y", "b,0,1,x", "b,0,0,x", "b,0,0,z"]
    path = table("question,batch,passed,note", rows)
    report = run("doctor", path, "--column", "trial=batch").stdout
    (command,) = re.findall("bayesatk (doctor .*--ignore batch)", " ".join(report.split()))
    assert "trial=batch" not in command
    assert "2 questions, 5 trials" in succeeded(*shlex.split(command))


# ------------------------------------------------------------------ what is read


@pytest.mark.parametrize("kind", ["csv", "jsonl", "json", "eval", "inspect json"])
def test_standard_input_is_read_whatever_it_is(runs, kind, tmp_path) -> None:
    content = runs.read_bytes()
    if kind in ("json", "jsonl"):
        content = bk.convert(runs, tmp_path / "runs.jsonl").read_bytes()
    if kind == "json":
        content = json.dumps([json.loads(line) for line in content.splitlines()]).encode()
    elif "e" in kind:
        content = (LOGS / f"inspect/arithmetic_a.{kind.split()[-1]}").read_bytes()
    assert "6 questions" in succeeded("evaluate", "-", *SEED, input=content)


def test_labels_columns_files_and_tasks_are_named(runs, tmp_path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"who": "a", "q": 1, "mark": "C"}\n{"who": "a", "q": 1, "mark": "I"}\n')
    named = "--score C=1 --score I=0 --column question=q --column outcome=mark --column system=who"
    assert "0.500" in succeeded("evaluate", path, "-m", "bayes", *named.split(), "--seed", 1)
    first, second, shuffled = (
        LOGS / f"inspect/{name}.eval" for name in ("arithmetic_a", "deflate", "shuffled")
    )
    printed = succeeded("compare", f"new={first}", f"old={second}", *SEED)
    assert "new and old are not separated" in printed
    printed = succeeded("evaluate", first, shuffled, *SEED, "--task", "arithmetic")
    assert "1 system x 6 questions" in printed
    for size in ("1GiB", "100MB", "4000000"):
        succeeded("doctor", runs, "--memory", size)


def test_parts_of_one_system_are_told_before_what_they_lack_is_refused(table, tmp_path) -> None:
    (tmp_path / "its runs").mkdir()
    for part in range(3):
        rows = [f"q{part}{question},{trial % 2}" for question in range(2) for trial in range(3)]
        table("question,passed", rows, f"its runs/part-{part:03}.csv")
    done = run("evaluate", tmp_path / "its runs", *SEED)
    assert done.exit_code == 2
    assert "1. If they are of 1 system:" in done.stderr
    named = next(line for line in done.stderr.splitlines() if line.startswith("   bayesatk"))
    printed = succeeded(*shlex.split(named)[1:])
    assert "1 system x 6 questions, 18 trials" in printed


def test_convert_keeps_what_is_true_of_trials(table, tmp_path) -> None:
    rows = [f"{q},{t},{(q + t) % 2},{q % 2 if t else ''}" for q in range(4) for t in range(2)]
    path, long = table("question,trial,outcome,human", rows), tmp_path / "long.jsonl"
    succeeded("convert", path, "--truth", "human", "-o", long)
    expected = bk.load(path, truth="human").dataset["truth_count"].values.tolist()
    assert bk.load(long, truth="truth").dataset["truth_count"].values.tolist() == expected


def test_convert_writes_a_long_table(tmp_path) -> None:
    path = tmp_path / "runs.csv"
    # The folder mixes logs with several scorers.
    assert "one scorer must be chosen" in refused("convert", LOGS / "inspect", "-o", path)
    assert not path.exists()
    logs = LOGS / "lm_eval/example__beta"
    succeeded("convert", logs, "-o", path, "--answers", "--same-system", "trials")
    assert path.read_text().splitlines()[0] == "system,question,trial,outcome,answer"
    assert len(path.read_text().splitlines()) == 11


def test_an_input_is_never_overwritten(runs) -> None:
    for command in (("evaluate", runs, "-m", "pass@1"), ("convert", f"x={runs}")):
        assert "--output must not be an input" in refused(*command, "-o", runs)
    assert runs.read_text() == RUNS


# ------------------------------------------------------------------ the model


@pytest.mark.long
def test_difficulty_chooses_the_families(runs, tmp_path) -> None:
    """One or several for a result; with a pilot for its plan, without one its mean and icc."""
    path = tmp_path / "fit.nc"
    succeeded(
        "evaluate", runs, *SEED, "--difficulty", "beta", "--difficulty", "inflated", "-o", path
    )
    assert bk.load_result(path)["closed_form"]["family"].values.tolist() == ["beta", "inflated"]
    for command in ("compare", "evaluate"):
        answer = json.loads(succeeded(command, runs, *SEED, "--difficulty", "mixture", "--json"))
        assert answer["provenance"]["prior"]["families"] == [["mixture", 1.0]]
    goal = ["-m", "pass@2", "--width", 0.3, "--trials", "2"]
    succeeded("plan", runs, *goal, "--difficulty", "beta")
    refused("plan", *goal, "--difficulty", "beta")
    refused("plan", runs, *goal, "--difficulty", "a=0.5,0.3")


@pytest.mark.parametrize(("options", "population"), [
    ((), "law"), (("--population", "bootstrap"), "bootstrap"), (("--pooling", "none"), "bootstrap"),
])  # fmt: skip
def test_the_population_is_an_option(runs, options, population) -> None:
    answer = json.loads(succeeded("evaluate", runs, *SEED, *options, "--json"))
    assert answer["provenance"]["population"] == population


def test_groups_are_a_level_of_their_own(table) -> None:
    rows = [
        f"{task},{trial},{int(trial * task % 3 > 0)},d{task % 4}"
        for task in range(12)
        for trial in range(3)
    ]
    path = table("task,trial,passed,domain", rows)
    printed = succeeded("evaluate", path, *SEED, "--group", "domain", "--group-weight", "equal")
    assert "new groups" in printed
    assert "Groups of questions" in printed


@pytest.mark.long
def test_a_table_of_trials_marked_twice_corrects_the_marks(runs, table, tmp_path) -> None:
    marked = ["1,1"] * 45 + ["0,1"] * 5 + ["0,0"] * 47 + ["1,0"] * 3
    twice = table("mark,truth", marked, "twice.csv")
    path = tmp_path / "fit.nc"
    options = ("--pooling", "complete", "--judge", twice)
    succeeded("evaluate", runs, *SEED, *options, "-o", path)
    judge = bk.JudgeError(tp=45, p=50, fp=3, n=50)
    expected = bk.evaluate(bk.load(runs), "pass@1", pooling="complete", judge=judge, rng=1)
    ours, theirs = (fit["closed_form"].to_dataset() for fit in (bk.load_result(path), expected))
    assert ours["pass_at_k"].equals(theirs["pass_at_k"])
    more = [f"new,{task},{trial},{int(task != 1)}" for task in range(6) for trial in range(3)]
    three = table(RUNS.strip(), more)
    for line in ((runs, *SEED, *options), (three, *SEED, "--judge", twice)):
        assert "corrected for errors of the judge" in succeeded("compare", *line)
    refusal = run("evaluate", runs, *SEED, "--judge", runs).stderr
    assert "must be a table with a column 'mark'" in refusal


def test_a_column_of_truth_corrects_the_marks(table, tmp_path) -> None:
    rows = [
        f"{system},{task},{int(task % 3 > 0)},{human}"
        for system in "ab"
        for task in range(24)
        for human in ("", int(task % 4 > 0) if task < 16 else "")
    ]
    path, saved = table("system,task,passed,human", rows), tmp_path / "fit.nc"
    succeeded("evaluate", path, *SEED, "--pooling", "complete", "--truth", "human", "-o", saved)
    expected = bk.evaluate(bk.load(path, truth="human"), "pass@1", pooling="complete", rng=1)
    ours, theirs = (fit["closed_form"].to_dataset() for fit in (bk.load_result(saved), expected))
    assert ours["pass_at_k"].equals(theirs["pass_at_k"])
    assert "truth known of 16 trials" in succeeded("doctor", path, "--truth", "human")
    assert "passed" in refused("evaluate", path, "-m", "pass@1", "--truth", "passed")


@pytest.mark.long
def test_systems_are_chosen_by_name(table, tmp_path) -> None:
    right = {"old": 2, "new": 3, "3": 1}
    rows = [f"{name},{task},{int(task % 4 < right[name])}" for name in right for task in range(24)]
    path, policy = table("system,task,passed", rows), tmp_path / "gate.toml"
    policy.write_text('metric = "pass@1"\nmargin = 0.3\neffect = -0.4\n')
    options = (*SEED, "--pooling", "none")
    (row, _) = tables_of("compare", path, *options, "--system", "3", "--system", "old")[
        "comparison"
    ]
    assert (row["system"], row["other"]) == ("old", "3")
    plan = ("plan", path, "-m", "pass@1", "--width", 0.2)
    succeeded(*plan, "--system", "new", "--json")
    assert "--width 0.2 --system old --system new" in refused(*plan)
    gate = ("gate", path, "--policy", policy)
    grouped = run(*gate, "--system", "new", "--system", "old", "--group", "task").stderr
    assert "--where task=VALUE" in grouped
    for names in (["new"], ["new", "new"], ["old", "new", "3"]):
        named = [text for name in names for text in ("--system", name)]
        refusal = run(*gate, *named).stderr
        assert "--system must name two systems" in refusal
        assert "--system NEW --system BASELINE" in " ".join(refusal.split())
    assert "--system must be among" in refused("compare", path, *options, "--system", "nobody")
    stated = ("--difficulty", "a=0.6,0.3", "--width", 0.2, "--system", "a")
    both = (
        "plan",
        path,
        "--system",
        "old",
        "--system",
        "new",
        "--trials",
        1,
        "--width",
        0.1,
        "--json",
    )
    (estimated,), (apart,) = (
        json.loads(succeeded(*both, *more))["tables"]["plan"] for more in ((), ("--correlation", 0))
    )
    assert estimated["questions"] < apart["questions"]  # new passes what old does, and more
    assert "--system chooses systems of a FILE" in refused("plan", "-m", "pass@1", *stated)
    unnamed = ("plan", "--width", 0.2, "--json", "--difficulty", "0.6,0.3")
    assert json.loads(succeeded(*unnamed)) == json.loads(succeeded(*unnamed[:-1], "system=0.6,0.3"))


# ------------------------------------------------------------------ sampling, guessing, reports


@pytest.mark.long
@pytest.mark.slow
def test_verify_and_its_exit_codes(runs, tmp_path, monkeypatch) -> None:
    path = tmp_path / "sampled.nc"
    asked = ("verify", runs, "-m", "pass@1,2", "--difficulty", "beta", "--seed", 1)
    assert "AGREE" in succeeded(*asked, "-o", path)
    assert bk.load_result(path).attrs["method"] == "nuts"

    from bayesatk.models import sampling

    honest = sampling.sample

    def shifted(*args, **kwargs):
        tree = honest(*args, **kwargs)
        tree["posterior"] = tree["posterior"].to_dataset() * 0.9
        return tree

    monkeypatch.setattr(sampling, "sample", shifted)
    done = run(*asked, "--json")
    assert done.exit_code == 1
    assert json.loads(done.output)["verdict"] == "disagree"


@pytest.mark.long
@pytest.mark.slow
def test_the_demo_agrees_with_the_sampler() -> None:
    answer = json.loads(succeeded("demo", "--json"))
    assert answer["verdict"] == "agree"
    estimates = [row["estimate"] for row in answer["tables"]["results"] if "pass^" in row["metric"]]
    assert [round(value, 3) for value in estimates[::2]] == [0.42, 0.273, 0.22, 0.2]


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_reader_that_leaves_is_no_failed_gate(more) -> None:
    line = "from bayesatk.cli.app import app; app()"
    done = subprocess.Popen(
        [sys.executable, "-c", line, "guess", "--n", "100", "--guess", "0.5", "-t", "10", *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    done.stdout.close()  # as `head` does once it has its lines
    with done.stderr as errors:
        assert errors.read() == b""
    assert done.wait() == 141


@pytest.mark.long
def test_the_baseline_of_a_file_is_that_of_its_result(runs, tmp_path) -> None:
    path = tmp_path / "fit.nc"
    printed = succeeded("guess", runs, "--guess", 0.25, "-t", 5, "--seed", 1, "-o", path)
    for words in ("best of 5 random guessers", "tuned!", "if selected"):
        assert words in printed
    rows = tables_of("guess", runs, "--labels", "4=6", "-t", 5, "--seed", 1)["random_baseline"]
    expected = bk.load_result(path)["random_baseline"]["p_value"].values
    assert [row["p_value"] for row in rows] == pytest.approx(expected)


def test_baseline_of_a_published_accuracy() -> None:
    printed = succeeded("guess", "--n", 100, "--guess", 0.5, "-t", 10, "--accuracy", 0.6)
    for number in ("0.5768", "0.6400", "0.251"):
        assert number in printed
    answer = json.loads(succeeded("guess", "--labels", "2=50", "--labels", "5=50", "--json"))
    assert answer["expected_best"] == pytest.approx(0.4201718738, abs=1e-10)
    rounded = ("--accuracy", 0.3, "--decimals", 1)
    assert " to " in succeeded("guess", "-n", 30, "-p", 0.25, *rounded)


@pytest.mark.long
@pytest.mark.slow
def test_a_report_has_all_that_was_asked_for(table, tmp_path) -> None:
    rows = [
        f"{system},{q},{int((7 * i + 3 * q) % 11 > 4)},d{q % 3},{0.01 * (1 + q % 4)}"
        for i, system in enumerate(["old", "new", "other"])
        for q in range(12)
        for _ in "ab"
    ]
    path, page = table("system,task,passed,domain,usd", rows), tmp_path / "r.html"
    succeeded(
        "report",
        path,
        "-o",
        page,
        *SEED,
        "--group",
        "domain",
        "--cost",
        "usd",
        "--guess",
        0.25,
        "-q",
    )
    text = page.read_text()
    titles = re.findall(r"<summary>(.*?) \(\d+ rows", text)
    for title in (
        "Results",
        "Leaderboard",
        "Groups of questions",
        "Against the best of 10 random guessers",
    ):
        assert title in titles
    assert 'aria-label="Score and cost. Points: posterior means.' in text
    assert 'aria-label="Random baseline.' in text


@pytest.mark.long
@pytest.mark.slow
def test_a_report_with_verification(runs, tmp_path) -> None:
    path = tmp_path / "report.html"
    succeeded("report", runs, "-o", path, *SEED, "--verify", "--difficulty", "beta", "-q")
    assert "The closed form and the sampled PyMC model agree" in path.read_text(encoding="utf-8")


# ------------------------------------------------------------------ help and refusals

COMMON = {
    "metric", "system", "group", "missing", "score", "column", "where", "ignore", "records", "wide",
    "success", "same-system", "better", "truth", "cost", "seed", "json", "output", "quiet",
}  # fmt: skip


def test_help_shows_the_usual_options_and_help_all_the_rest_in_groups() -> None:
    short, full = run("evaluate", "--help").output, run("evaluate", "--help-all").output
    assert set(re.findall(r"^│ --([\w-]+)", short, re.M)) == COMMON | {"help", "help-all"}
    groups = ["Options", "Questions and trials", "Tables and files", "Logs", "The model"]
    starts = [full.index(f"─ {name} ─") for name in groups]
    assert starts == sorted(starts)
    common, _, _, logs, model = (full[a:b] for a, b in pairwise([*starts, len(full)]))
    assert all(f"--{option} " in common for option in COMMON)
    assert "--empty-output" in logs
    assert "--ci-prob" in model


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_whose_options_exist(name) -> None:
    command = COMMANDS[name]
    assert f" {name} " in run("--help").output
    for option in ("--help", "--help-all"):
        assert not re.search(r"<(bool|str|list\[|int|float|path)", run(name, option).output)
    options = {option for parameter in command.params for option in parameter.opts}
    examples = re.findall(r"bayesatk .*?(?=;|$)", command.epilog)
    assert examples
    for example in examples:
        words = shlex.split(example)
        assert words[1] == name
        assert {word for word in words if re.match("--?[a-z]", word)} <= options, example


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--help", "Exit codes: 0 done, 1 closed form and sampler disagree, a gate fails, 2"),
        ("--version", f"bayesatk {bk.__version__}"),
        ("estimate", "No such command"),
        ("evaluate", "Missing argument"),
    ],
)
def test_a_line_without_a_command_is_answered(line: str, words: str) -> None:
    assert words in " ".join(run(*line.split()).output.split())


REFUSED = {
    "evaluate none.csv -m pass@1": "no such file",
    "verify a=none.csv b=none.csv -m pass@1": "no such file",
    "cite none.nc": "no such file",
    "evaluate '' -m pass@1": "got an empty name",
    "evaluate new={runs} {runs} -m pass@1": "all NAME=FILE, or all without",
    "evaluate {runs} -m pass@x": "must have integers",
    "evaluate {runs} -m pas@1": "--metric: 'pas@1' is not a known metric",
    "evaluate {runs} -m pass@1 --difficulty gamma": "--difficulty must be 'averaged', or",
    "evaluate {runs} -m pass@1 --difficulty mixture --pooling none": "leave out --difficulty",
    "evaluate {runs} -m pass@1 --population law --pooling none":
        "--pooling none must be left out with --population law",
    "evaluate {runs} -m pass@1 --group-weight equal":
        "--group-weight must be left out without --group",
    "evaluate {runs} -m pass@1 --ci-prob 2": "--ci-prob must lie",
    "evaluate {runs} -m pass@1 --column question": "--column must be NAME=VALUE",
    "evaluate {runs} -m pass@1 --column outcome=run0,run7": "run7",
    "evaluate {runs} -m pass@1 --score a=1": "at least two outcomes .* --score I=0 --score C=1",
    "evaluate {runs} -m pass@1 --score a=SCORE": "got a=SCORE. Write what a is worth",
    "evaluate {runs} -m pass@1 --seed -1": "--seed must be an integer >= 0",
    "gate --metric pass@2 --margin 0.1 --design --difficulty 0.6,0.4 --questions 9 --trials 1":
        "--trials must be 2 or more",
    "evaluate {runs} -m pass@1 -o fit.txt": "must end in .nc, .zarr, .json, .csv",
    "evaluate {runs} -m pass@1 -o no/x.nc": "a folder that exists",
    "evaluate {runs} -m plurality@2": "Use --answers, or",
    "evaluate {runs} -m plurality@2 --pooling none": "Use --answers, or",
    "evaluate {graded} -m pass@1":
        "1. If 'C' is right: bayesatk .*C=1 --score D=0 2. If 'D' is right: .* --score C=0",
    "evaluate {logs}/inspect/two_scorers.eval -m pass@1": "--scorer graded",
    "evaluate {logs}/inspect/errors.eval -m pass@1": "--missing ignore leaves them out",
    "evaluate {logs}/inspect/arithmetic_a.eval -m pass@1 --task sums":
        "task must be one of 'arithmetic'.*'sums'",
    "evaluate {logs}/lm_eval/example__beta -m pass@1":
        "--same-system trials.* a=first.log b=second.log",
    "doctor {runs} --memory much": "--memory must be bytes, or a size such as 4GiB; got 'much'",
    "compare {one} -m pass@1": "FILE must have at least two systems.* a=first.csv b=second.csv",
    "report {runs} -o report.docx": "must end in .html",
    "convert {empty} -o long.csv": "must have rows",
    "plan -m pass@1": "give a pilot FILE or --difficulty",
    "plan Makefile -m pass@1 --difficulty a=0.5,0.1": "one of the two",
    "plan {one} -m pass@1 --width 0.1 --prob-correct 0.9":
        "one goal, --width 0.1, --prob-correct 0.9 or --prob-ahead 0.8; got 2",
    "plan {one} -m pass@1 --width 0": "--width must be finite and > 0",
    "plan {one} -m pass@1,2 --width 1": "--metric must be one metric",
    "plan {one} -m pass@1 --prob-correct 0.9":
        "--prob-correct needs two systems, --difficulty a=0.6,0.3 --difficulty b=0.65,0.3 or",
    "guess --n 10": "either --guess",
    "guess Makefile --n 10": "either --guess",
    "guess Makefile --guess 0.5 --n 10": "go without a FILE",
    "guess --guess 0.5": "--n QUESTIONS",
    "guess --labels four=80": "whole numbers",
    "guess --n 10 --guess 0.5 --accuracy 0.55": "whole number",
    "guess --n 10 --guess 0.5 --accuracy 2": "--accuracy must lie between 0 and 1",
    "guess --n 0 --guess 0.5": "--n must be an integer >= 1",
    "evaluate {runs} --column foo=correct": "'foo' is none. Roles are system, question",
    "guess {one} --guess 0.5 -t 0": "--t must be a number of at least 1",
}  # fmt: skip


@pytest.mark.parametrize("line", REFUSED)
def test_bad_input_is_one_line_that_names_options(runs, table, line) -> None:
    binary = table("question,outcome", ["a,1", "a,0", "b,1", "b,1"], "one.csv")
    graded = table("question,outcome", ["a,C", "a,D"], "graded.csv")
    empty = table("task,trial,passed", [], "empty.csv")
    files = {"runs": runs, "one": binary, "graded": graded, "logs": LOGS, "empty": empty}
    refusal = refused(*(word.format(**files) for word in shlex.split(line)))
    assert re.search(REFUSED[line], refusal), refusal
    assert "=..." not in refusal


def test_the_command_is_a_module_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bayesatk", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("bayesatk 0.")


def test_a_remedy_with_the_letters_of_what_was_typed_is_a_command() -> None:
    """Scores the other way round have the same letters; in another order they are the same."""
    score = SimpleNamespace(name="score", opts=["--score"], secondary_opts=[], is_flag=False)
    keep_typed("doctor", [score], ["marks.csv", "--score", "N=1", "--score", "Y=0"])
    for scores, proposed in (({"N": 0, "Y": 1}, True), ({"Y": 0, "N": 1}, False)):
        message = Message("Score them: ", Argument("scores", scores), ".")
        assert ("bayesatk doctor marks.csv" in with_commands(message, ["score"])) == proposed

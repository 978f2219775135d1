"""The command line: tables, JSON, files, exit codes, one-line errors."""

import json
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

import bayesatk as bk
from bayesatk.cli.app import app

RUNS = "model,task,trial,passed\n" + "".join(
    f"{model},{task},{trial},{int((trial * task + len(model)) % 3 > 0)}\n"
    for model in ("base", "tuned!")
    for task in range(6)
    for trial in range(3)
)


@pytest.fixture
def runs(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(RUNS)
    return path


def run(*arguments: object):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_evaluate_prints_a_table_and_a_card(runs) -> None:
    done = run("evaluate", runs, "-m", "pass@1,4", "--seed", 1)
    assert done.exit_code == 0
    for text in (
        "2 systems x 6 questions, 36 trials",
        "tuned!",
        "pass@4",
        "like these",
        "k>n",
        "distribution-free range",
    ):
        assert text in done.output


def test_evaluate_writes_json_and_netcdf(runs, tmp_path) -> None:
    path = tmp_path / "fit.nc"
    done = run("evaluate", runs, "-m", "pass@1 pass^2", "--json", "-o", path, "--seed", 1)
    assert done.exit_code == 0
    answer = json.loads(done.output)
    fit = bk.load_result(path)
    assert answer["provenance"]["pooling"] == bk.Result.of(fit).pooling == "partial"
    assert len(answer["tables"]["results"]) == 8
    row = answer["tables"]["results"][0]
    exact = fit["closed_form"]["pass_at_k"].sel(system="base", k=1, target="questions")
    assert row["mean"] == pytest.approx(float(exact.sel(statistic="mean")), abs=1e-14)


def test_costs_of_a_column_are_printed_and_compared(tmp_path) -> None:
    path = tmp_path / "paid.csv"
    rows = RUNS.strip().splitlines()
    paid = [f"{row},{0.01 * (number % 5 + 1):.2f}" for number, row in enumerate(rows[1:])]
    path.write_text("\n".join([f"{rows[0]},usd", *paid]))
    options = ("--cost", "usd", "--cost-unit", "USD", "--difficulty", "beta", "--seed", 1)
    done = run("compare", path, "-m", "pass@1", *options)
    assert done.exit_code == 0
    for text in ("mean 0.02944 USD", "cost/success", "in USD; lower is better"):
        assert text in done.output
    done = run("compare", path, "-m", "cost/success", *options)
    assert "cost/success: the expected" in done.output
    for unasked in (" mean  ", "cost: the expected", "tier"):
        assert unasked not in done.output
    tables = json.loads(run("evaluate", path, "--json", *options).output)["tables"]
    assert {"cost", "cost/success"} < {row["metric"] for row in tables["results"]}
    written = tmp_path / "long.csv"
    assert run("convert", path, "-o", written, "--cost", "usd").exit_code == 0
    assert written.read_text().splitlines()[0].endswith("outcome,cost")
    assert "--missing-cost" not in run("doctor", path).output
    for arguments, text in (
        (("evaluate", path, "-m", "cost"), "Read them: --cost usd"),
        (("evaluate", path, "--cost", "dollars"), "dollars"),
    ):
        refused = run(*arguments)
        assert refused.exit_code == 2
        assert text in refused.output


COMMON = (
    "metric", "system", "group", "missing", "score", "column", "seed", "json", "output", "quiet",
)  # fmt: skip


def test_help_shows_ten_options_and_help_all_the_rest_in_groups() -> None:
    short, full = run("evaluate", "--help").output, run("evaluate", "--help-all").output
    assert set(re.findall(r"^│ --([\w-]+)", short, re.M)) == {*COMMON, "help", "help-all"}
    groups = ["Options", "Questions and trials", "Tables and files", "Logs", "The model"]
    starts = [full.index(f"─ {name} ─") for name in groups]
    assert starts == sorted(starts)
    common, _, _, logs, model = (full[a:b] for a, b in pairwise([*starts, len(full)]))
    assert all(f"--{option} " in common for option in COMMON)
    assert "--empty-output" in logs
    assert "--ci-prob" in model


@pytest.mark.parametrize("command", ["", "evaluate", "gate", "plan", "doctor", "cite"])
def test_help_names_no_types_of_python(command) -> None:
    for option in ("--help", "--help-all"):
        text = run(*command.split(), option).output
        assert not re.search(r"<(bool|str|list\[|int|float|path)", text)
    assert ("--help-all" in run(*command.split(), "--help").output) == (command not in ("", "cite"))


def test_metrics_default_to_what_the_trials_allow(runs) -> None:
    done = run("evaluate", runs, "--pooling", "complete", "--seed", 1, "--json")
    rows = json.loads(done.stdout)["tables"]["results"]
    assert {row["metric"] for row in rows} == {"pass@1", "pass@2", "pass^2"}  # of three trials


def test_memory_is_bytes_or_a_size(runs) -> None:
    for size in ("1GiB", "100MB", "4000000"):
        assert run("doctor", runs, "--memory", size).exit_code == 0
    refused = run("doctor", runs, "--memory", "much")
    assert refused.exit_code == 2
    assert "--memory must be bytes, or a size such as 4GiB; got 'much'" in refused.stderr


def test_trials_stand_side_by_side(tmp_path) -> None:
    wide, long = tmp_path / "wide.csv", tmp_path / "long.csv"
    wide.write_text("system,task,run0,run1\na,x,1,0\na,y,0,0\nb,x,1,1\nb,y,1,\n")
    rows = ["a,x,1", "a,x,0", "a,y,0", "a,y,0", "b,x,1", "b,x,1", "b,y,1"]
    long.write_text("\n".join(["system,task,outcome", *rows]))
    side = bk.load(wide, columns={"outcome": "run0, run1"})
    assert side.dataset.drop_attrs().equals(bk.load(long).dataset.drop_attrs())
    done = run("doctor", wide, "--column", "outcome=run0,run1")
    assert "outcome = column 'run0,run1'" in done.output
    assert "left out" not in done.output
    done = run("doctor", wide)  # as they are named
    assert "outcome = column 'run0,run1'" in done.output
    table = pd.read_csv(wide)
    for read in (table, pl.from_pandas(table), pl.from_pandas(table).lazy()):
        told = bk.tally(read, columns={"outcome": "run0, run1"})
        assert told.dataset.drop_attrs().equals(side.dataset.drop_attrs())
    refused = run("evaluate", wide, "-m", "pass@1", "--column", "outcome=run0,run7")
    assert refused.exit_code == 2
    assert "run7" in refused.stderr


def test_quiet_prints_only_the_table(runs) -> None:
    done = run("evaluate", runs, "-m", "bayes", "-q", "--pooling", "none", "--seed", 1)
    assert "Outcomes" not in done.output
    assert "bayes" in done.output


def test_labels_and_columns_can_be_mapped(tmp_path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"who": "a", "q": 1, "mark": "C"}\n{"who": "a", "q": 1, "mark": "I"}\n')
    done = run(
        "evaluate", path, "-m", "bayes", "--score", "C=1", "--score", "I=0", "--column",
        "question=q", "--column", "outcome=mark", "--column", "system=who", "--seed", 1,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "0.500" in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.csv", "-m", "pass@1"), "no such file"),
        (("{runs}", "-m", "pass@x"), "must have integers"),
        (
            ("{runs}", "-m", "pass@1", "--difficulty", "gamma"),
            "--difficulty must be 'averaged', or",
        ),
        (
            ("{runs}", "-m", "pass@1", "--difficulty", "mixture", "--pooling", "none"),
            "leave out --difficulty",
        ),
        (("{runs}", "-m", "pass@1", "--ci-prob", "2"), "--ci-prob must lie"),
        (("{runs}", "-m", "pass@1", "--column", "question"), "--column must be NAME=VALUE"),
        (
            ("{runs}", "-m", "pass@1", "--score", "a=1"),
            "--score must map at least two outcomes to numbers, as in --score I=0 --score C=1",
        ),
        (("{runs}", "-m", "pass@1", "-o", "fit.txt"), "must end in .nc, .zarr, .json, .csv;"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(runs, arguments, message) -> None:
    done = run("evaluate", *(one.format(runs=runs) for one in arguments))
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.output


@pytest.mark.long
@pytest.mark.slow
def test_verify_and_its_exit_codes(runs, tmp_path, monkeypatch) -> None:
    path = tmp_path / "sampled.nc"
    asked = ("verify", runs, "-m", "pass@1,2", "--difficulty", "beta", "--seed", 1)
    done = run(*asked, "-o", path)
    assert done.exit_code == 0, done.output
    assert "AGREE" in done.output
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
def test_demo() -> None:
    done = run("demo", "--json")
    assert done.exit_code == 0
    answer = json.loads(done.output)
    assert answer["verdict"] == "agree"
    estimates = [row["estimate"] for row in answer["tables"]["results"] if "pass^" in row["metric"]]
    assert [round(value, 3) for value in estimates[::2]] == [0.42, 0.273, 0.22, 0.2]


def test_a_reader_that_leaves_is_no_failed_gate() -> None:
    line = "from bayesatk.cli.app import app; app()"
    arguments = ["guess", "--n", "100", "--guess", "0.5", "-t", "10"]
    for more in ([], ["--json"]):
        done = subprocess.Popen(
            [sys.executable, "-c", line, *arguments, *more],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert done.stdout is not None
        assert done.stderr is not None
        done.stdout.close()  # as `head` does once it has its lines
        said = done.stderr.read()
        done.stderr.close()
        assert (done.wait(), said) == (141, b"")


@pytest.mark.long
def test_baseline_of_a_file(runs, tmp_path) -> None:
    path = tmp_path / "fit.nc"
    done = run("guess", runs, "--guess", 0.25, "-t", 5, "--seed", 1, "-o", path)
    assert done.exit_code == 0, done.output
    for text in ("best of 5 random guessers", "tuned!", "if selected"):
        assert text in done.output
    done = run("guess", runs, "--labels", "4=6", "-t", 5, "--seed", 1, "--json")
    answer = json.loads(done.output)
    group = bk.load_result(path)["random_baseline"]
    assert [row["p_value"] for row in answer["tables"]["random_baseline"]] == pytest.approx(
        group["p_value"].values
    )


def test_baseline_of_a_published_accuracy() -> None:
    done = run("guess", "--n", 100, "--guess", 0.5, "-t", 10, "--accuracy", 0.6)
    assert done.exit_code == 0
    for text in ("0.5768", "0.6400", "0.251"):
        assert text in done.output
    done = run("guess", "--labels", "2=50", "--labels", "5=50", "--json")
    assert json.loads(done.output)["expected_best"] == pytest.approx(0.4201718738, abs=1e-10)
    done = run("guess", "-n", 30, "-p", 0.25, "--accuracy", 0.3, "--decimals", 1)
    assert " to " in done.output


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--help", "Exit codes"),
        ("evaluate --help", "Example"),
        ("--version", bk.__version__),
        ("estimate", "No such command"),
        ("evaluate", "Missing argument"),
        ("verify a=none.csv b=none.csv -m pass@1", "there is no such file"),
        ("plan -m pass@1", "give a pilot FILE or --difficulty"),
        ("plan Makefile -m pass@1 --difficulty a=0.5,0.1", "one of the two"),
        ("guess Makefile --n 10", "either --guess"),
        ("guess Makefile --guess 0.5 --n 10", "go without a FILE"),
        ("cite none.nc", "there is no such file"),
    ],
)
def test_a_line_is_explained_or_refused(line: str, says: str) -> None:
    assert says in run(*line.split()).output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n", "10"], "either --guess"),
        (["--guess", "0.5"], "--n QUESTIONS"),
        (["--labels", "four=80"], "whole numbers"),
        (["--n", "10", "--guess", "0.5", "--accuracy", "0.55"], "whole number"),
    ],
)
def test_guess_says_what_it_needs(arguments, message) -> None:
    done = run("guess", *arguments)
    assert done.exit_code == 2
    assert message in done.output


def test_a_leaderboard_ranks_systems_however_few(runs) -> None:
    done = run("leaderboard", runs, "-m", "pass@1", "--seed", 1)
    assert done.exit_code == 0, done.output
    for text in ("pass@1: systems ranked on these questions", "P(best)", "tier"):
        assert text in done.output


def test_compare_prints_pairs_and_sentences(runs) -> None:
    done = run("compare", runs, "-m", "pass@1", "--seed", 1)
    assert done.exit_code == 0, done.output
    for text in ("P(better)", "like these", "on the same 6 questions"):
        assert text in done.output
    answer = json.loads(run("compare", runs, "-m", "pass@1", "--seed", 1, "--json").output)
    assert len(answer["tables"]["comparison"]) == 2
    assert answer["tables"]["comparison"][0]["monte_carlo_error"] < 0.01


LOGS = Path(__file__).parents[1] / "logs"
COMMANDS = [
    "evaluate", "verify", "compare", "leaderboard", "plan", "guess", "gate", "report", "doctor",
    "convert", "cite", "demo",
]  # fmt: skip


def test_every_command_has_an_example_in_its_help() -> None:
    done = run("--help")
    said = " ".join(done.output.split())
    assert "Exit codes: 0 done, 1 closed form and sampler disagree, a gate fails, 2" in said
    for command in COMMANDS:
        assert f" {command} " in done.output
        assert "Example" in run(command, "--help").output


def test_the_examples_of_the_help_have_options_that_exist() -> None:
    from typer.main import get_command

    for name, command in get_command(app).commands.items():
        known = {option for each in command.params for option in each.opts}
        for example in re.findall(r"bayesatk .*?(?=;|$)", command.epilog):
            words = shlex.split(example)
            assert words[1] == name
            assert {word for word in words if re.match("--?[a-z]", word)} <= known, example


@pytest.mark.parametrize("kind", ["csv", "jsonl", "json", "eval", "inspect json"])
def test_standard_input_is_read_whatever_it_is(runs, kind, monkeypatch, tmp_path) -> None:
    if kind == "eval":
        content = (LOGS / "inspect/arithmetic_a.eval").read_bytes()
    elif kind == "inspect json":
        content = (LOGS / "inspect/arithmetic_a.json").read_bytes()
    else:
        path = tmp_path / f"runs.{'jsonl' if kind == 'json' else kind}"
        content = bk.convert(runs, path).read_bytes() if kind != "csv" else runs.read_bytes()
        if kind == "json":
            content = json.dumps([json.loads(line) for line in content.splitlines()]).encode()
    done = CliRunner().invoke(app, ["evaluate", "-", "-m", "pass@1", "--seed", "1"], input=content)
    assert done.exit_code == 0, done.output
    assert "6 questions" in done.output
    assert "pass@1" in done.output


def test_files_can_name_their_systems(runs) -> None:
    done = run(
        "compare", f"new={LOGS}/inspect/arithmetic_a.eval", f"old={LOGS}/inspect/deflate.eval",
        "-m", "pass@1", "--seed", 1,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "are not separated" in done.output
    mixed = run("evaluate", f"new={runs}", runs, "-m", "pass@1")
    assert mixed.exit_code == 2
    assert "all NAME=FILE, or all without" in mixed.stderr


def test_parts_of_one_system_are_told_before_what_they_lack_is_refused(tmp_path) -> None:
    (folder := tmp_path / "its runs").mkdir()
    for part in range(3):
        rows = [f"q{part}{question},{trial % 2}\n" for question in range(2) for trial in range(3)]
        (folder / f"part-{part:03}.csv").write_text("question,passed\n" + "".join(rows))
    done = run("evaluate", folder, "-m", "pass@1", "--seed", 1)
    assert done.exit_code == 2
    assert "never run" in done.stderr
    (told,) = re.findall(
        r"are they of one system\? Then name it: (.*)\.$", done.stderr, re.MULTILINE
    )
    done = run("evaluate", *shlex.split(told), "-m", "pass@1", "--seed", 1)
    assert done.exit_code == 0, done.output
    assert "1 system x 6 questions, 18 trials" in done.output


def test_warnings_are_lines_on_standard_error() -> None:
    path = LOGS / "inspect/empty.eval"
    done = run("evaluate", path, "-m", "pass@1", "--seed", 1, "--json")
    assert done.exit_code == 0
    assert done.stderr.startswith("bayesatk: warning: 9 of 24 trials have an empty output")
    assert json.loads(done.stdout)["tables"]["results"]
    done = run("evaluate", path, "-m", "pass@1", "--empty-output", "missing", "--missing", "ignore")
    assert done.stderr == ""


@pytest.mark.parametrize("ending", ["nc", "json", "csv"])
def test_results_are_saved_by_the_ending_of_the_name(runs, tmp_path, ending) -> None:
    path = tmp_path / f"fit.{ending}"
    done = run("evaluate", runs, "-m", "pass@1", "--seed", 1, "-o", path)
    assert done.exit_code == 0, done.output
    assert f"Saved {path}" in done.output.replace("\n", "")
    assert path.stat().st_size > 500
    if ending == "nc":
        found = run("cite", path)
        assert "@misc{chen2021evaluating," in found.output
        assert "rubin1981" not in found.output


def test_cite_alone_prints_everything() -> None:
    assert run("cite").output.count("\n@") >= 12


def test_convert_writes_a_long_table(tmp_path) -> None:
    path = tmp_path / "runs.csv"
    done = run("convert", LOGS / "inspect", "-o", path)
    assert done.exit_code == 2  # the folder mixes logs with several scorers
    assert "one scorer must be chosen" in done.stderr
    assert not path.exists()
    done = run(
        "convert", LOGS / "lm_eval/example__beta", "-o", path, "--answers", "--same-system",
        "trials",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert path.read_text().splitlines()[0] == "system,question,trial,outcome,answer"
    assert len(path.read_text().splitlines()) == 11


@pytest.mark.long
def test_report_from_logs_in_one_command(tmp_path) -> None:
    path = tmp_path / "report.html"
    logs = [LOGS / "inspect/arithmetic_a.eval", LOGS / "inspect/arithmetic_b.eval"]
    done = run("report", *logs, "-o", path, "--guess", 0.1, "--seed", 1)
    assert done.exit_code == 0, done.output
    text = path.read_text(encoding="utf-8")
    for words in ("mockllm/alpha", "pass^k against k", "random guessers", "input files"):
        assert words in text
    bad = run("report", *logs, "-o", tmp_path / "report.docx")
    assert (bad.exit_code, "must end in .html" in bad.stderr) == (2, True)


@pytest.mark.long
@pytest.mark.slow
def test_a_report_has_all_that_was_asked_for(tmp_path) -> None:
    path, page = tmp_path / "runs.csv", tmp_path / "r.html"
    rows = [f"{s},{q},{int((7 * i + 3 * q) % 11 > 4)},d{q % 3},{0.01 * (1 + q % 4)}"
            for i, s in enumerate(["old", "new", "other"])
            for q in range(12) for _ in "ab"]  # fmt: skip
    path.write_text("\n".join(["system,task,passed,domain,usd", *rows]) + "\n")
    done = run("report", path, "-o", page, "-m", "pass@1", "--group", "domain", "--cost", "usd",
               "--guess", 0.25, "--seed", 1, "-q")  # fmt: skip
    assert done.exit_code == 0, done.output
    text = page.read_text()
    titles = re.findall(r"<summary>(.*?) \(\d+ rows", text)
    for words in ("Results", "Leaderboard", "Groups of questions",
                  "Against the best of 10 random guessers"):  # fmt: skip
        assert words in titles
    assert 'aria-label="Score and cost. Points: posterior means.' in text
    assert 'aria-label="Random baseline.' in text


@pytest.mark.long
@pytest.mark.slow
def test_report_with_verification(runs, tmp_path) -> None:
    path = tmp_path / "report.html"
    done = run(
        "report",
        runs,
        "-o",
        path,
        "-m",
        "pass@1",
        "--verify",
        "--difficulty",
        "beta",
        "-q",
        "--seed",
        1,
    )
    assert done.exit_code == 0, done.output
    assert "The closed form and the sampled PyMC model agree" in path.read_text(encoding="utf-8")


def test_an_input_is_never_overwritten(runs) -> None:
    before = runs.read_text()
    for command in (("evaluate", runs, "-m", "pass@1"), ("convert", f"x={runs}")):
        done = run(*command, "-o", runs)
        assert done.exit_code == 2
        assert "--output must not be an input" in done.stderr
    assert runs.read_text() == before
    assert "a folder that exists" in run("evaluate", runs, "-m", "pass@1", "-o", "no/x.nc").stderr


def test_remedies_are_options_of_the_command_line() -> None:
    graded = run("evaluate", LOGS / "inspect/two_scorers.eval", "-m", "pass@1")
    assert "--scorer graded" in graded.stderr
    errors = run("evaluate", LOGS / "inspect/errors.eval", "-m", "pass@1")
    assert "--missing ignore leaves them out" in errors.stderr
    twice = run(
        "evaluate", *sorted((LOGS / "lm_eval/example__beta").glob("*.jsonl")), "-m", "pass@1"
    )
    assert "--same-system trials" in twice.stderr
    assert "a=first.log b=second.log" in twice.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("plan", "{one}", "-m", "pass@1", "--width", "0.1", "--prob-correct", "0.9"),
            "one goal, --width 0.1 or --prob-correct 0.9; got 2",
        ),
        (("plan", "{one}", "-m", "pass@1", "--width", "0"), "--width must be finite and > 0"),
        (("plan", "{one}", "-m", "pass@1,2", "--width", "1"), "--metric must be one metric"),
        (
            ("plan", "{one}", "-m", "pass@1", "--prob-correct", "0.9"),
            "--prob-correct needs two systems, --difficulty a=0.6,0.3 --difficulty b=0.65,0.3 or",
        ),
        (
            ("guess", "{one}", "--guess", "3"),
            "--guess must have probabilities between 0 and 1",
        ),
        (("guess", "{one}", "--guess", "0.5", "-t", "0"), "--t must be a number of at least 1"),
        (
            ("guess", "--n", "10", "--guess", "0.5", "--accuracy", "2"),
            "--accuracy must lie between 0 and 1",
        ),
        (("guess", "--n", "0", "--guess", "0.5"), "--n must be at least 1"),
        (("evaluate", "{one}", "-m", "pas@1"), "--metric: 'pas@1' is not a known metric"),
        (("compare", "{one}", "-m", "pass@1"), "FILE must have at least two systems"),
        (("compare", "{one}", "-m", "pass@1"), "a=first.csv b=second.csv"),
        (("evaluate", "{one}", "-m", "plurality@2"), "Use --answers, or"),
        (("evaluate", "{one}", "-m", "plurality@2", "--pooling", "none"), "Use --answers, or"),
        (("evaluate", "{one}", "-m", "pass@1", "--ci-prob", "2"), "--ci-prob must lie"),
        (("evaluate", "{graded}", "-m", "pass@1"), "--score 0=0 --score 1=1 --score C=SCORE"),
    ],
)
def test_errors_speak_of_options(tmp_path, arguments, message) -> None:
    one, graded = tmp_path / "one.csv", tmp_path / "graded.csv"
    one.write_text("question,outcome\na,1\na,0\nb,1\nb,1\n")
    graded.write_text("question,outcome\na,C\na,D\n")
    done = run(*(str(each).format(one=one, graded=graded) for each in arguments))
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "=..." not in done.stderr


def test_the_same_errors_speak_of_arguments_in_python() -> None:
    fit = bk.evaluate([[1, 0], [1, 1]], "pass@1", draws=10, rng=1)
    goals = r"one goal, width=0.1 or prob_correct=0.9; got 2"
    with pytest.raises(ValueError, match=goals):
        bk.plan(fit, "pass@1", width=0.1, prob_correct=0.9)
    with pytest.raises(ValueError, match=r"fit must have .* bayesatk.load\(\{'a': 'first.csv'"):
        bk.compare(fit)


def test_systems_with_gaps_are_compared_on_what_they_share(tmp_path) -> None:
    path = tmp_path / "gaps.csv"
    path.write_text("system,task,passed\na,x,1\na,y,0\na,z,1\nb,x,1\nb,y,1\n")
    options = ("-m", "pass@1", "--missing", "ignore", "--pooling", "none", "--seed", 1)
    done = run("compare", path, *options)
    assert done.exit_code == 0, done.stderr
    shared = "on the same 2 questions (1 trial each) of 3, those that both tried"
    assert shared in " ".join(done.output.split())
    page = tmp_path / "r.html"
    assert run("report", path, *options, "-o", page).exit_code == 0
    assert shared in page.read_text()
    done = run("compare", path, *options, "--shared")
    assert "questions that every system tried: 2 of 3" in done.output


def test_a_board_of_systems_without_a_common_question_says_so(tmp_path) -> None:
    path = tmp_path / "apart.csv"
    rows = "a,x,1\na,y,0\nb,x,1\nb,y,1\nc,z,1\n"
    path.write_text("system,task,passed\n" + rows)
    options = ("-m", "pass@1", "--missing", "ignore", "--pooling", "none", "--seed", 1)
    done = run("compare", path, *options)
    assert done.exit_code == 0, done.stderr
    assert "No question was tried by all systems." in " ".join(done.output.split())
    found = json.loads(run("compare", path, *options, "--json").stdout)["tables"]
    assert {row["system"] for row in found["comparison"]} <= {"a", "b"}
    assert "ranks" not in found
    page = tmp_path / "r.html"
    done = run("report", path, *options, "-o", page)
    assert done.exit_code == 0, done.stderr
    assert ">nan" not in page.read_text().lower()


@pytest.mark.long
def test_many_systems_are_ranked_and_pairs_are_printed_when_asked_for(tmp_path) -> None:
    path = tmp_path / "many.csv"
    rows = [f"{s},{q},{int((7 * s + 3 * q) % 11 > s)}" for s in range(5) for q in range(8)]
    path.write_text("system,task,passed\n" + "\n".join(rows) + "\n")
    options = ("-m", "pass@1", "--seed", 1)
    done = run("compare", path, *options)
    assert done.exit_code == 0, done.stderr
    assert "systems ranked on questions like these" in done.output
    assert "P(better)" not in done.output
    found = json.loads(run("compare", path, *options, "--json").stdout)["tables"]
    assert len(found["leaderboard"]) == 10
    assert "comparison" not in found
    kept = tmp_path / "kept.nc"
    done = run("compare", path, *options, "--pairs", "-o", kept)
    assert "P(better)" in done.output
    assert "Tiers in" not in done.output
    again = bk.load_result(kept)
    assert bk.table(again, "leaderboard").to_dict("records") == found["leaderboard"]
    assert len(bk.table(again, "comparison")) == 20


def test_systems_that_share_nothing_are_told_so(tmp_path) -> None:
    path, page = tmp_path / "none.csv", tmp_path / "r.html"
    path.write_text("system,task,passed\na,x,1\nb,y,1\n")
    options = ("-m", "pass@1", "--missing", "ignore", "--pooling", "none", "--seed", 1)
    done = run("compare", path, *options)
    assert done.exit_code == 2
    assert "two systems that tried the same question; of 2 systems no two did" in done.stderr
    done = run("report", path, *options, "-o", page)
    assert done.exit_code == 0, done.stderr
    assert "is ahead of" not in page.read_text()


def test_one_task_of_several_can_be_read() -> None:
    logs = [LOGS / "inspect/arithmetic_a.eval", LOGS / "inspect/shuffled.eval"]
    done = run("evaluate", *logs, "-m", "pass@1", "--task", "arithmetic", "--seed", 1)
    assert done.exit_code == 0, done.stderr
    assert "1 system x 6 questions" in done.output
    wrong = run("evaluate", *logs, "-m", "pass@1", "--task", "sums")
    assert "task must be one of 'arithmetic', 'choices_by_epoch'; got 'sums'" in wrong.stderr


def test_long_names_fold_and_numbers_stay_whole(tmp_path) -> None:
    path = tmp_path / "long.csv"
    names = [f"provider/a-rather-long-model-name-{number}-instruct" for number in range(2)]
    rows = [f"{name},{task},{(task + i) % 2}" for i, name in enumerate(names) for task in range(6)]
    path.write_text("system,task,passed\n" + "\n".join(rows) + "\n")
    done = run("compare", path, "-m", "pass@1", "--seed", 1)
    assert "\u2026" not in done.output
    for name in names:
        assert name in done.output


def test_a_converted_log_reads_back_as_it_is(tmp_path) -> None:
    path = tmp_path / "runs.csv"
    run("convert", LOGS / "inspect/arithmetic_a.eval", "-o", path)
    back, straight = bk.load(path), bk.load(LOGS / "inspect/arithmetic_a.eval")
    assert back.dataset.identical(straight.dataset)


def test_the_version_is_printed() -> None:
    assert run("--version").output == f"bayesatk {bk.__version__}\n"
    assert run("evaluate", "", "-m", "pass@1").stderr.count("got an empty name") == 1


@pytest.mark.long
def test_difficulty_chooses_the_families(runs, tmp_path) -> None:
    """One or several for a result; with a pilot for its plan, without one its mean and icc."""
    path = tmp_path / "fit.nc"
    chosen = ["--difficulty", "beta", "--difficulty", "inflated"]
    done = run("evaluate", runs, "-m", "pass@1", *chosen, "-o", path, "--seed", 1)
    assert done.exit_code == 0, done.output
    names = bk.load_result(path)["closed_form"]["family"].values.tolist()
    assert names == ["beta", "inflated"]
    for command in ("compare", "evaluate"):
        done = run(command, runs, "-m", "pass@1", "--difficulty", "mixture", "--json", "--seed", 1)
        assert json.loads(done.output)["provenance"]["prior"]["families"] == [["mixture", 1.0]]
    goal = ["-m", "pass@2", "--width", 0.3, "--trials", "2"]
    pilot = run("plan", runs, *goal, "--difficulty", "beta")
    assert pilot.exit_code == 0, pilot.output
    assert run("plan", *goal, "--difficulty", "beta").exit_code == 2
    assert run("plan", runs, *goal, "--difficulty", "a=0.5,0.3").exit_code == 2


def test_the_population_is_an_option(runs) -> None:
    asked = ("evaluate", runs, "-m", "pass@1", "--json", "--seed", 1)
    for options, population in (
        ((), "law"),
        (("--population", "bootstrap"), "bootstrap"),
        (("--pooling", "none"), "bootstrap"),
    ):  # fmt: skip
        done = run(*asked, *options)
        assert json.loads(done.output)["provenance"]["population"] == population
    done = run(*asked, "--population", "law", "--pooling", "none")
    assert done.exit_code == 2
    assert "--pooling none must be left out with --population law" in done.stderr


def test_groups_are_a_level_of_their_own(tmp_path) -> None:
    path = tmp_path / "grouped.csv"
    rows = [f"{task},{trial},{int(trial * task % 3 > 0)},d{task % 4}"
            for task in range(12) for trial in range(3)]  # fmt: skip
    path.write_text("task,trial,passed,domain\n" + "\n".join(rows))
    options = ("--group", "domain", "--group-weight", "equal", "--seed", 1)
    done = run("evaluate", path, "-m", "pass@1", *options)
    assert done.exit_code == 0
    assert "new groups" in done.output
    assert "Groups of questions" in done.output
    done = run("evaluate", path, "-m", "pass@1", "--group-weight", "equal")
    assert done.exit_code == 2
    assert "--group-weight must be left out without --group" in done.stderr


@pytest.mark.long
def test_a_table_of_trials_marked_twice_corrects_the_marks(runs, tmp_path) -> None:
    twice = tmp_path / "twice.csv"
    rows = ["1,1"] * 45 + ["0,1"] * 5 + ["0,0"] * 47 + ["1,0"] * 3
    twice.write_text("mark,truth\n" + "\n".join(rows) + "\n")
    path = tmp_path / "fit.nc"
    known = ("--pooling", "complete", "--judge", twice, "--seed", 1)
    assert run("evaluate", runs, "-m", "pass@1", *known, "-o", path).exit_code == 0
    judge = bk.JudgeError(tp=45, p=50, fp=3, n=50)
    expected = bk.evaluate(bk.load(runs), "pass@1", pooling="complete", judge=judge, rng=1)
    ours, theirs = (each["closed_form"].to_dataset() for each in (bk.load_result(path), expected))
    assert ours["pass_at_k"].equals(theirs["pass_at_k"])
    done = run("compare", runs, "-m", "pass@1", *known)
    assert "corrected for errors of the judge" in " ".join(done.output.split())
    three = tmp_path / "three.csv"
    more = [f"new,{task},{trial},{int(task != 1)}" for task in range(6) for trial in range(3)]
    three.write_text(RUNS + "\n".join(more) + "\n")
    done = run("compare", three, "-m", "pass@1", "--judge", twice, "--seed", 1)
    assert "corrected for errors of the judge" in " ".join(done.output.split())
    assert "must be a table with a column 'mark'" in run(
        "evaluate", runs, "-m", "pass@1", "--judge", runs
    ).output.replace("\n", " ")


def test_a_column_of_truth_corrects_the_marks(tmp_path) -> None:
    path, saved = tmp_path / "runs.csv", tmp_path / "fit.nc"
    rows = [f"{system},{task},{int(task % 3 > 0)},{human}"
            for system in "ab" for task in range(24)
            for human in ("", int(task % 4 > 0) if task < 16 else "")]  # fmt: skip
    path.write_text("\n".join(["system,task,passed,human", *rows]))
    options = ("-m", "pass@1", "--pooling", "complete", "--seed", 1, "--truth", "human")
    assert run("evaluate", path, *options, "-o", saved).exit_code == 0
    expected = bk.evaluate(bk.load(path, truth="human"), "pass@1", pooling="complete", rng=1)
    ours, theirs = (each["closed_form"].to_dataset() for each in (bk.load_result(saved), expected))
    assert ours["pass_at_k"].equals(theirs["pass_at_k"])
    assert "truth known of 16 trials" in run("doctor", path, "--truth", "human").output
    done = run("evaluate", path, "-m", "pass@1", "--truth", "passed")
    assert done.exit_code == 2
    assert "--truth" in done.stderr or "column" in done.stderr


@pytest.mark.long
def test_systems_are_chosen_by_name(tmp_path) -> None:
    path, policy = tmp_path / "runs.csv", tmp_path / "gate.toml"
    right = {"old": 2, "new": 3, "3": 1}
    rows = [f"{name},{task},{int(task % 4 < right[name])}" for name in right for task in range(24)]
    path.write_text("\n".join(["system,task,passed", *rows]))
    policy.write_text('metric = "pass@1"\nmargin = 0.3\neffect = -0.4\n')
    options = ("-m", "pass@1", "--pooling", "none", "--seed", 1, "--json")
    done = run("compare", path, *options, "--system", "3", "--system", "old")
    (row, _) = json.loads(done.output)["tables"]["comparison"]
    assert (row["system"], row["other"]) == ("old", "3")
    done = run("plan", path, "-m", "pass@1", "--width", 0.2, "--system", "new", "--json")
    assert done.exit_code == 0, done.stderr
    done = run("plan", path, "-m", "pass@1", "--width", 0.2)
    assert "of a pilot choose them: --system old --system new" in done.stderr
    done = run("gate", path, "--policy", policy, "--system", "new", "--system", "old", "--json")
    answer = json.loads(done.output)
    assert answer["observed"] == {"new": 0.75, "baseline": 0.5}
    for names in (["new"], ["new", "new"], ["old", "new", "3"]):
        chosen = [text for name in names for text in ("--system", name)]
        done = run("gate", path, "--policy", policy, *chosen)
        assert done.exit_code == 2
        assert "--system must name two systems" in done.stderr
        assert "Write --system NEW --system BASELINE." in " ".join(done.stderr.split())
    done = run("compare", path, *options, "--system", "nobody")
    assert "--system must be among the labels of the data" in done.stderr
    stated = ("--difficulty", "a=0.6,0.3", "--width", 0.2)
    done = run("plan", "-m", "pass@1", *stated, "--system", "a")
    assert "--system chooses systems of a FILE" in done.stderr


def test_doubts_on_the_card_name_options_of_the_shell(tmp_path) -> None:
    rows = [f"a,{q},{arm},{(q + len(arm)) % 2}" for q in (1, 2, 3) for arm in ("x", "yy")]
    (tmp_path / "arms.csv").write_text("\n".join(["system,question,scaffold,outcome", *rows]))
    done = run("evaluate", tmp_path / "arms.csv", "-m", "pass@1", "--pooling", "none")
    (line,) = [line for line in done.stdout.splitlines() if "CHECK: the rows" in line]
    assert "columns=" not in done.stdout
    told = run("doctor", tmp_path / "arms.csv").stdout
    for text in (done.stdout, told):
        assert " ".join(text.split()).count("--column system=system,scaffold") == 1
    assert "CHECK" not in told  # said once, under "Look at"
    assert "assumed: CHECK" not in line

"""Tables as people publish them: what is recognised, what is doubted, and remedies as printed.

Names of fields: ragas ``EvaluationResult.to_pandas`` (user_input, response, metrics by name);
MLflow ``eval_results_table.json`` (``columns``, ``data``, as pandas writes ``orient="split"``);
METR ``runs.jsonl`` (score_binarized, score_cont); NeMo Gym rollouts (``rollout_collection``); all
others are of published files of evaluations. Every table is made here; its right answer is counted
by hand, or by the line that makes it.
"""

import ast
import gzip
import io
import json
import re
import shlex
import subprocess
import sys
import warnings
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayesatk as bk
from tests.cli.shell import run, succeeded
from tests.io.logs import (
    LOGS,
    as_document,
    attempt,
    cells,
    counts,
    load_quietly,
    only,
    refused,
    totals,
    written,
)

if sys.version_info >= (3, 14):
    from compression.zstd import compress
else:
    from backports.zstd import compress


def remedy(message, argument):
    """The value that a message proposes for an argument; ... is what the reader knows."""
    start = message.index(f"{argument}=") + len(argument) + 1
    for end in range(start + 1, len(message) + 1):
        try:
            return ast.literal_eval(message[start:end].replace("...", "'FILL'"))
        except (SyntaxError, ValueError):
            continue
    raise AssertionError(message)


def told(path, options):
    """The data, or None, and all that is said: the refusal, or the warnings and the card."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", bk.OutcomeWarning)
        data, message = attempt(lambda: bk.load(path, **options))
    return data, "\n".join([message, *(str(warning.message) for warning in caught)]) + (
        data.card() if data is not None else ""
    )


@dataclass
class Table:
    """A table, what is said of it and proposed, step by step, and how it is read in the end.

    Each step is what is said (a regular expression), the arguments proposed after it, which are
    taken as they are printed, and arguments beside them; ``fill`` is what stands for their "...".
    """

    content: Any
    steps: list[tuple[Any, ...]] = field(default_factory=list)
    reads: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    fill: object = None
    name: str = "runs.csv"


def filled(value, fill):
    if isinstance(value, dict):
        return {key: filled(part, fill) for key, part in value.items()}
    return fill if value == "FILL" else value


TWO_BY_TWO = "  ".join(
    f"{profile},{task},{seed},{harness},{int(profile == 'careful' or harness == 'tools')}"
    for profile in ("careful", "hasty") for task in "ab" for seed in range(2)
    for harness in ("basic", "tools")
)  # fmt: skip
COUNTS = ("question,alpha_n_correct,alpha_n_samples,beta_n_correct,beta_n_samples"
          "  q0,6,7,6,6  q1,1,6,0,4  q2,2,2,3,5")  # fmt: skip
CROSSED = "model,{},question,correct  " + "  ".join(
    f"a,{value},{question},{mark}" for value, marks in (("x", "00011110"), ("y", "10100011"))
    for question in range(4) for mark in marks[2 * question : 2 * question + 2]
)  # fmt: skip

PROPOSED = {
    # conditions
    "a column that tells all repetitions apart": Table(
        "task,wording,passed  a,p1,1  a,p2,0  b,p1,1  b,p2,0",
        [("differ in column 'wording'", "columns")], "p1: a 1/1, b 1/1; p2: a 0/1, b 0/1",
    ),
    **{  # the number of the trial runs on over the arms, and is then no second number
        f"arms called {name}": Table(
            f"task,{name},rep,success  t,x,1,1  t,x,2,1  t,y,3,0  t,y,4,0  u,x,1,1  u,x,2,1"
            "  u,y,3,0  u,y,4,0",
            [(f"differ in column '{name}'", "columns")],
            "x: t 2/2, u 2/2; y: t 0/2, u 0/2",
        )
        for name in ("condition", "agent_type", "regime", "profile", "setup")
    },
    "shares with a percent sign": Table(
        "model,item,n_runs,accuracy  a,x,4,50%  a,y,2,100%  b,x,4,0%  b,y,4,25%",
        [("Counts or rates may be in 'accuracy', 'n_runs'", "columns")],
        "a: x 2/4, y 2/2; b: x 0/4, y 1/4",
    ),
    "systems in a column of an unusual name, as its trials are": Table(
        "wer,task,Versuch,passed  alpha,a,0,1  alpha,a,1,0  alpha,b,0,1  alpha,b,1,1"
        "  beta,a,0,0  beta,a,1,0  beta,b,0,1  beta,b,1,0",
        [("differ in column 'wer'", "columns")], "alpha: a 1/2, b 2/2; beta: a 0/2, b 1/2",
    ),
    "arms with prompts of their own": Table(
        "scaffold,prompt,correct  plain,X,1  plain,Y,0  careful,think X,1  careful,think Y,1",
        [("one value of column 'scaffold'", "columns"), ("no two of the 2 systems", "missing")],
        "plain: X 1/1, Y 0/1; careful: think X 1/1, think Y 1/1",
    ),
    "names of arms in the column of trials": Table(
        "run,model,case_id,correct  plain,m,c,0  plain,m,d,0  one-line hint,m,c,1"
        "  one-line hint,m,d,1",
        [("differ in column 'run' .'plain', 'one-line hint'.", "columns")],
        "m / plain: c 0/1, d 0/1; m / one-line hint: c 1/1, d 1/1",
    ),
    "a column that is null everywhere": Table(
        [{"task": q, "arm": arm, "model": None, "passed": arm == "x"}
         for q in "ab" for arm in "xy"],
        [("differ in column 'arm'", "columns")], "x: a 1/1, b 1/1; y: a 0/1, b 0/1",
        name="runs.jsonl",
    ),
    "two factors": Table(
        f"profile,task,seed,harness,success  {TWO_BY_TWO}",
        [("system includes 'profile' and 'harness'", "columns")],
        "careful / basic: a 2/2, b 2/2; careful / tools: a 2/2, b 2/2; hasty / basic: a 0/2, b 0/2;"
        " hasty / tools: a 2/2, b 2/2",
    ),
    "rows of one value of a factor": Table(
        f"profile,task,seed,harness,success  {TWO_BY_TWO}",
        [("system includes 'profile' and 'harness'", "where"),
         ("system includes 'harness'", "columns")],
        "basic: a 2/2, b 2/2; tools: a 2/2, b 2/2",
    ),
    "rows of several values of a factor, and of one of another": Table(
        f"profile,task,seed,harness,success  {TWO_BY_TWO}", [],
        "careful / basic: a 1/1, b 1/1; careful / tools: a 1/1, b 1/1; hasty / basic: a 0/1, b 0/1;"
        " hasty / tools: a 1/1, b 1/1",
        {"where": {"profile": ["hasty", "careful"], "seed": 1},
         "columns": {"system": "profile,harness"}},
    ),
    "a harness, unevenly often": Table(
        "condition,task_id,correct,panic  control,a,0,.1  control,a,1,.1  control,b,1,.1"
        "  credits,a,1,.1  credits,b,0,.1  credits,b,0,.1",
        [("differ in column 'condition'", "columns")],
        "control: a 1/2, b 1/1; credits: a 1/1, b 0/2",
    ),
    "a harness beside a seed": Table(
        "task_id,harness,seed,passed  a,naive,0,1  a,naive,1,0  a,loop,0,0  a,loop,1,1",
        [("must occur once.*system includes 'harness'", "columns")], "naive: a 1/2; loop: a 1/2",
    ),
    "a second number of trials": Table(
        "task,attempt,wave,passed  a,0,0,1  a,0,1,0  b,0,0,1  b,0,1,1",
        [("if 'wave' numbers trials too", "columns")], "a 1/2, b 2/2",
    ),
    "successes and trials in a cell": Table(
        "task,a,b  x,1/4,2/2  y,4/4,0/3", [("Counts or rates", "columns")],
        "a: x 1/4, y 4/4; b: x 2/2, y 0/3",
    ),
    "several metrics of a trial": Table(  # by hand: of x 1 of 2, of y 2 of 2
        "task_id,trial,metric,value  x,0,latency_s,9  x,0,exact,1  x,1,latency_s,3  x,1,exact,0"
        "  y,0,latency_s,3  y,0,exact,1  y,1,latency_s,4  y,1,exact,1",
        [("read one alone, as proposed", "where", "columns")], "x 1/2, y 2/2",
    ),
    "several raters of a trial": Table(
        "prompt_id,generation,rater,rating  x,1,ann,1  x,1,bob,0  x,2,ann,0  x,2,bob,0"
        "  y,1,ann,1  y,1,bob,1  y,2,ann,1  y,2,bob,0",
        [("are not independent trials; read one alone", "where", "columns")], "x 1/2, y 2/2",
    ),
    "shares of systems side by side": Table(
        "task,a_pass_rate,b_pass_rate  x,0.25,1.0  y,0.5,0.75",
        [("Trials may be one number", "columns")], "a: x 1/4, y 2/4; b: x 4/4, y 3/4", fill=4,
    ),
    "ids that start anew in every suite, with trials": Table(
        "suite,idx,run,correct  math,0,1,0  math,0,2,1  math,1,1,1  math,1,2,1  law,0,1,0"
        "  law,0,2,0  law,1,1,0  law,1,2,1",
        [("Ids that come more than once are in 'idx'", "columns")],
        "math / 0 1/2, math / 1 2/2, law / 0 0/2, law / 1 1/2",
    ),
    "partly right": Table(
        "task,verdict  x,correct  x,partially correct  y,incorrect  y,correct",
        [("Marks are in 'verdict'", "columns"), ("was half right", "scores")], "",
    ),
    "names of systems that differ in case": Table(
        "model,task,correct  Alpha,x,1  alpha,y,0  beta,x,1  beta,y,0",
        [("systems 'Alpha' and 'alpha' differ in case",)], "", {"missing": "ignore"},
    ),
    "accuracies of a benchmark": Table(
        "model,benchmark,accuracy,n  a,g,0.7104,1319  b,g,0.7506,1319",
        [("all rows are trials of one", "columns"),
         ("1319 trials are read as those of one question",)], "",
    ),
    "trials of systems side by side": Table(
        "q,gpt-4o_run1,gpt-4o_run2,o1_run1,o1_run2  x,0,1,1,1  y,0,0,0,1", [],
        "gpt-4o: x 1/2, y 0/2; o1: x 2/2, y 1/2",
    ),
    "a judge": Table(
        "case,judge,attempt,correct  a,x,0,0  a,x,1,1  a,y,0,1  a,y,1,1",
        [("system includes 'judge'", "columns")], "x: a 1/2; y: a 2/2",
    ),
    "runs again under the number of a failed one": Table(  # a time is no number of a trial
        "arm,task,trial,success,wall_sec  A,x,0,0,.54  A,x,0,1,0  A,x,1,1,10.5  A,y,0,1,3"
        "  A,y,1,1,13.5  B,x,0,1,1  B,x,1,1,11.5  B,y,0,1,4  B,y,1,1,14.5",
        [("if the system includes 'arm'", "columns"),
         ("if every row is a trial of its own", "ignore")],
        "A: x 2/3, y 2/2; B: x 2/2, y 2/2",
    ),
    "one question with columns of few values": Table(
        [{"mode": mode, "gap_ms": gap, "repetition": t, "output_correct": True}
         for mode in "AB" for gap in (100, 500) for t in range(2)],
        [("system includes 'mode' and 'gap_ms'", "columns")],
        "A / 100: all rows 2/2; A / 500: all rows 2/2; B / 100: all rows 2/2;"
        " B / 500: all rows 2/2",
        {"columns": {"outcome": "output_correct", "question": "(one)"}}, name="runs.jsonl",
    ),
    "modes of one model": Table(
        {"model": "gpt", "results": [
            {"id": f"Q{q}", "mode": mode, "question": f"What {q}?", "refused": False,
             "correct": mode == "system", "latency_s": q + (mode == "system") / 9}
            for q in range(3) for mode in ("baseline", "system")]},
        [("the rows of a question differ in column 'mode' \\('baseline', 'system'\\)", "columns")],
        "gpt / baseline: Q0 0/1, Q1 0/1, Q2 0/1; gpt / system: Q0 1/1, Q1 1/1, Q2 1/1",
        name="runs.json",
    ),
    # questions and their trials
    "a number of the row beside a name that is none of the usual": Table(
        "id,vignette,attempt,success  10,q0,1,0  11,q0,2,1  12,q1,1,1  13,q1,2,1  14,q2,1,0"
        "  15,q2,2,0",
        [("each value of 'vignette' has 2 rows", "columns")], "q0 1/2, q1 2/2, q2 0/2",
    ),
    "lists beside a numbered trial": Table(
        [{"task": "a", "seed": seed, "success": [0, 0, 1], "solved": 1} for seed in range(2)],
        [("a row of one trial must have one outcome", "ignore")], "a 2/6", name="runs.jsonl",
    ),
    "rows that are trials of one task": Table(
        {"summary": {"episodes": 3}, "episodes": [
            {"episode_id": n, "steps": 9, "done": n > 0, "return": n / 3} for n in range(3)]},
        [("Marks are in 'done'.*if all rows", "columns")], "all rows 2/3",
        name="runs.json",
    ),
    "one question of two agents": Table(
        "maze_id,agent_type,seed,success  m1,A,0,1  m1,B,0,1  m1,A,1,0  m1,B,1,1",
        [("one question column", "columns"), ("system includes 'agent_type'", "columns")],
        "A: m1 1/2; B: m1 2/2",
    ),
    "two marks of the episodes of one task": Table(
        {"episodes": [{"episode_id": n, "success_90": n > 2, "success_95": False}
                      for n in range(4)]},
        [("They can be read if all rows are trials of one", "columns")], "all rows 1/4",
        name="runs.json",
    ),
    "ids that come more than once": Table(
        "run_id,maze_id,agent_type,success  r0A,m0,A,0  r0B,m0,B,1  r1A,m1,A,1  r1B,m1,B,1",
        [("in 'maze_id'. Each of 'agent_type' has as many rows", "columns")],
        "A: m0 0/1, m1 1/1; B: m0 1/1, m1 1/1",
    ),
    "records without a question": Table(
        [{"task": "a", "passed": 1}, {"task": None, "passed": 0}, {"passed": 0}],
        [("'task'.*line 2", "missing_question"), ("rows without a question, left out: 2",)],
        "a 1/1", name="runs.jsonl",
    ),
    "rows without a question": Table(
        "task,passed  a,1  ,0", [("row 3 has none", "missing_question")], "a 1/1",
    ),
    # outcomes
    "outcomes that the first record lacks": Table(
        '{"task": "a", "error": "timeout"}  {"task": "a", "passed": 1}  {"task": "b", "passed": 0}',
        [("1 missing outcomes.*missing='ignore'.*(?=missing='wrong')", "missing")],
        "a 1/2 and 1 missing, b 0/1", name="runs.jsonl",
    ),
    "marks beside numbers of 0 and 1 and more": Table(
        "task,run_idx,solved_of_3,verified  a,1,0,1  a,2,1,0  b,1,3,1",
        [("Marks are in 'verified'\\.", "columns")], "a 1/2, b 1/1",
    ),
    "marks beside a flag": Table(
        "model,task,disable_tool_choice,part_correct  m,a,0,True  m,b,1,True",
        [("Marks are in 'part_correct'\\.", "columns")], "a 1/1, b 1/1",
    ),
    "rates of 0 of episodes": Table(
        "split,success_rate,n_episodes  near,0.0,10.0  far,0.0,10.0",
        [("Counts or rates may be in 'success_rate', 'n_epi", "columns")], "near 0/10, far 0/10",
        fill="split",
    ),
    "counts of successes and failures": Table(
        "challenge,times_passed,times_failed  a,3,1  b,2,2",
        [("'times_passed', 'times_failed'", "columns")], "a 3/4, b 2/4", fill="challenge",
    ),
    "counts in capitals": Table(
        "Test,NumFailingRuns,NumPassingRuns  t1,0,100  t2,47,53",
        [("Counts or rates may be in", "columns")], "t1 100/100, t2 53/100", fill="Test",
    ),
    "rates and episodes": Table(
        "agent,task,episodes,success_rate  a,t,30,0.1  a,u,20,0.5  b,t,30,0.9  b,u,20,1.0",
        [("'success_rate', 'episodes'", "columns")], "a: t 3/30, u 10/20; b: t 27/30, u 20/20",
    ),
    "accuracy and the number that it is of": Table(
        "model,eval_set,n_eval,best_val_accuracy,accuracy  bert,in,4462,0.99712,0.99529"
        "  bert,out,304,0.99712,0.51645",
        [("'accuracy', 'n_eval'", "columns")], "in 4441/4462, out 157/304", fill="eval_set",
    ),
    "accuracy and n": Table(
        "task,model,n,accuracy  a,m,30,0.5  b,m,30,0.1",
        [("may be in 'n', 'accuracy'|may be in 'accuracy', 'n'", "columns")], "a 15/30, b 3/30",
    ),
    "columns of rates side by side": Table(
        "task,direct,planning  t0,50,55  t1,35,40  t2,100,0",
        [("if each number counts successes of so many trials", "columns")],
        "direct: t0 50/100, t1 35/100, t2 100/100; planning: t0 55/100, t1 40/100, t2 0/100",
        fill=100,
    ),
    "counts of several systems side by side": Table(
        COUNTS, [("Name it: ", "columns")],
        "alpha: q0 6/7, q1 1/6, q2 2/2; beta: q0 6/6, q1 0/4, q2 3/5",
    ),
    "counts of a system that never succeeds twice": Table(
        "question,alpha_n_correct,alpha_n_samples,beta_n_correct,beta_n_samples"
        "  q0,6,7,1,6  q1,1,6,0,4", [("Name it: ", "columns")],
        "alpha: q0 6/7, q1 1/6; beta: q0 1/6, q1 0/4",
    ),
    "counts of tries": Table(
        "model,task,passes,tries  a,t1,3,5  a,t2,4,5  b,t1,0,5  b,t2,5,5",
        [("Counts or rates may be in", "columns")], "a: t1 3/5, t2 4/5; b: t1 0/5, t2 5/5",
    ),
    "two columns of marks that differ": Table(
        "task,passed,solved  a,1,0  b,1,1",
        [("several could be it: \\['passed', 'solved'\\]", "columns")], "a 1/1, b 1/1",
    ),
    "columns of marks that are systems": Table(
        "task_id,base_correct,tuned_correct,base_time  t0,1,True,.25  t1,0,True,1.25",
        [("if each column of marks is a system", "wide", "columns")],
        "base_correct: t0 1/1, t1 0/1; tuned_correct: t0 1/1, t1 1/1",
    ),
    "objects with the same marks that are systems": Table(
        [{"id": q, **{name: {"em": int(q < n), "f1": 1.0, "hops": n}
                      for n, name in enumerate(("once", "twice"), start=1)}} for q in range(3)],
        [("if each object is a system", "wide", "columns")],
        "once: 0 1/1, 1 0/1, 2 0/1; twice: 0 1/1, 1 1/1, 2 0/1", name="runs.jsonl",
    ),
    "words for marks": Table(
        "model,task,grade_of_it  a,t1,Pass  a,t2,FAIL  b,t1,Pass  b,t2,Pass",
        [("Marks are in 'grade_of_it'", "columns")], "a: t1 1/1, t2 0/1; b: t1 1/1, t2 1/1",
    ),
    "percentages of trials": Table(
        "model,item,seed,score_pct  a,x,0,68.5  a,x,1,60  b,x,0,10  b,x,1,20.5",
        [("Scores may be in 'score_pct'", "columns", "scores")],
    ),
    "systems and numbers of two trials in columns of unusual names": Table(
        "Modell,Aufgabe,Versuch,done  a,1,0,1  a,1,1,0  a,2,0,0  a,2,1,0  a,3,0,1  a,3,1,1"
        "  a,4,0,0  a,4,1,0  a,5,0,1  a,5,1,1  b,1,0,1  b,1,1,1  b,2,0,1  b,2,1,0  b,3,0,0"
        "  b,3,1,1  b,4,0,0  b,4,1,0  b,5,0,0  b,5,1,0",
        [("Each of 'Modell' has as many rows of every question", "columns")],
        "a: 1 1/2, 2 0/2, 3 2/2, 4 0/2, 5 2/2; b: 1 2/2, 2 1/2, 3 1/2, 4 0/2, 5 0/2",
    ),
    "systems that are temperatures": Table(
        "model,temperature,task,passed  a,0.0,x,1  a,0.0,x,1  a,0.7,x,0  a,0.7,x,1"
        "  a,0.0,y,1  a,0.0,y,1  a,0.7,y,0  a,0.7,y,0",
        [("differ in column 'temperature'", "columns")],
        "a / 0.0: x 2/2, y 2/2; a / 0.7: x 1/2, y 0/2",
    ),
    "marks of two judges": Table(
        "model,task,run,judge_a,judge_b  m,x,0,1,1  m,x,1,0,1  m,y,0,0,0  m,y,1,1,1",
        [("if the marks are in 'judge_b'", "columns")], "x 2/2, y 1/2",
    ),
    "marks of what went wrong": Table(
        "model,task,run,failed  a,x,0,1  a,x,1,1  a,y,0,0  b,x,0,1  b,x,1,0  b,y,0,0",
        [("Marks are in 'failed'", "columns", "scores")], "a: x 0/2, y 1/1; b: x 1/2, y 1/1",
    ),
    "marks of what went wrong, true and false": Table(
        [{"task": "x", "has_error": True}, {"task": "x", "has_error": False}],
        [("Marks are in 'has_error'", "columns", "scores")], "x 1/2", name="runs.jsonl",
    ),
    "marks of what went wrong, named alone": Table(
        "task,wrong  x,no  x,yes  y,no",
        [("CHECK: column 'wrong' is called as what went wrong, and its marks 'yes' are", "scores")],
        "x 1/2, y 1/1", {"columns": {"outcome": "wrong"}},
    ),
    "signs for marks": Table(
        "model,task,ok_  a,x,✓  a,x,✗  a,y,✗", [("Marks are in 'ok_'", "columns")], "x 1/2, y 0/1",
    ),
    "cells between bars": Table("task|passed  x|1  x|0  y|1", [], "x 1/2, y 1/1"),
    "a number of trials that was not filled in": Table(
        "question,model,acc  x,a,0.5  y,a,1.0",
        [("number of trials beside a rate", {"columns": {"trials": 4}})], "x 2/4, y 4/4",
        options={"columns": {"rate": "acc", "trials": "NUMBER"}},
    ),
    "words for marks of systems side by side": Table(
        "task,m_a,m_b  x,pass,fail  y,pass,pass  z,fail,fail",
        [("if each column of marks is a system: ", "wide", "columns")],
        "m_a: x 1/1, y 1/1, z 0/1; m_b: x 0/1, y 1/1, z 0/1",
    ),
    "scores of systems side by side": Table(
        "question,m_a,m_b  x,0.25,0.5  y,0.75,0.125  z,0.5,0.0",
        [("if each column of scores is a system: ", "wide", "columns", "scores")],
    ),
    "scores with a percent sign": Table(
        "model,item,seed,rating  a,x,0,68.5%  a,x,1,60%  a,x,2,50%  b,x,0,10%  b,x,1,20.5%"
        "  b,x,2,20%", [("Scores may be in 'rating'", "columns", "scores")],
    ),
    "ids of several suites in a column": Table(
        "dataset,model,question_id,correct  gsm,a,1,1  gsm,a,2,0  math,a,1,0  math,a,2,1",
        [("if ids are of several suites", "columns")],
        "gsm / 1 1/1, gsm / 2 0/1, math / 1 0/1, math / 2 1/1",
    ),
    **{  # each value has two rows of a question, which say nothing of how it repeats
        f"{name} crossed with questions, read as {way}": Table(
            CROSSED.format(name), [(f"differ in column '{name}'.*{words}", argument)], reads,
        )
        for name, way, words, argument, reads in (
            ("language", "systems", "if the system includes 'language'", "columns",
             "a / x: 0 0/2, 1 1/2, 2 2/2, 3 1/2; a / y: 0 1/2, 1 1/2, 2 0/2, 3 2/2"),
            ("subject", "suites", "if ids are of several suites", "columns",
             "x / 0 0/2, x / 1 1/2, x / 2 2/2, x / 3 1/2, y / 0 1/2, y / 1 1/2, y / 2 0/2,"
             " y / 3 2/2"),
            ("fold", "trials", "if it changes nothing", "ignore", "0 1/4, 1 2/4, 2 2/4, 3 3/4"),
        )
    },
    "ids of unusual names that suites share": Table(
        CROSSED.format("dataset").replace("question", "entry_key"),
        [("As proposed, the rows of a question differ.*if ids are of several suites", "columns")],
        "x / 0 0/2, x / 1 1/2, x / 2 2/2, x / 3 1/2, y / 0 1/2, y / 1 1/2, y / 2 0/2, y / 3 2/2",
    ),
    "dates of the trials": Table(
        "model,task,date,passed  a,x,2026-03-01,1  a,x,2026-03-02,0  a,y,2026-03-01,1"
        "  a,y,2026-03-02,1", [("if it tells the trials apart", "columns")], "x 1/2, y 2/2",
    ),
    "a judge and a person called otherwise": Table(  # people marked a few trials
        "model,task,run,auto_grade,gold_check  m,x,0,1,1  m,x,1,1,0  m,y,0,0,  m,y,1,1,",
        [("if 'auto_grade' is what a judge says and 'gold_check' the truth", "truth", "columns")],
        "x 2/2, y 1/2",
    ),
    "a person beside marks of a usual name": Table(
        "model,task,run,correct,human_label  m,x,0,1,1  m,x,1,1,0  m,y,0,0,  m,y,1,1,",
        [("marks are in 'human_label' as well, and are left out", "truth")], "x 2/2, y 1/2",
    ),
    "predictions and labels of 0 and 1": Table(
        "model,id,prediction,label  m,x,0,0  m,y,1,0  m,z,1,1",
        [("right where 'prediction' equals 'label'", "columns")], "x 1/1, y 0/1, z 1/1",
    ),
    "lists of marks in a field of an unusual name": Table(
        [{"task_id": "x", "results": [True, False]}, {"task_id": "y", "results": [True, True]}],
        [("Marks are in 'results'", "columns")], "x 1/2, y 2/2", name="runs.jsonl",
    ),
    "ids and marks within objects": Table(
        [{"model": "m", "doc": {"id": q, "text": "?"}, "metrics": {"acc": (q + t) % 2}}
         for q in (1, 2) for t in (0, 1, 1)],
        [("come more than once are in 'doc.id'", "columns")], "1 1/3, 2 2/3", name="runs.jsonl",
    ),
    "counts of systems side by side that no name says": Table(
        "question,gpt,claude  x,1,3  y,5,1  z,0,2",
        [("each number counts successes of so many trials", "columns")],
        "gpt: x 1/5, y 5/5, z 0/5; claude: x 3/5, y 1/5, z 2/5", fill=5,
    ),
    "numbers of successes and a total": Table(
        "model,suite,correct,total  a,x,3,5  a,y,4,5  b,x,0,5  b,y,5,5",
        [("Counts or rates may be in", "columns")], "a: x 3/5, y 4/5; b: x 0/5, y 5/5",
    ),
    "the only column that is left holds the scores": Table(
        "model,doc,perplexity  a,x,4.5  a,y,2.5  b,x,3.5  b,y,1.25",
        [("Scores may be in 'perplexity'", "columns", "scores", "better")],
    ),
    "rates that are rounded": Table(
        "model,task,rate_,n  a,x,0.71,14042  a,y,0.55,1319",
        [("seem rounded by up to 0.005, so that successes are known to 70 either way", {})],
        "x 9970/14042, y 725/1319",
        options={"columns": {"rate": "rate_", "trials": "n"}},
    ),
    "suites under the same trials": Table(
        "model,subset,question_id,seed,correct  a,p,1,0,1  a,p,1,1,1  a,r,1,0,0  a,r,1,1,1",
        [("must occur once.*if ids are of several suites", "columns")], "p / 1 2/2, r / 1 1/2",
    ),
    "a row of the total": Table(
        "task,passed  x,1  y,0  TOTAL,1",
        [("'TOTAL' is called so", "where")], "x 1/1, y 0/1",
    ),
    "a row of the total beside counts": Table(
        "task,a_right,b_right  x,1,3  y,2,4  TOTAL,3,7",
        [("'TOTAL' is called as a summary.*each number counts successes", "where", "columns")],
        "a: x 1/4, y 2/4; b: x 3/4, y 4/4", fill=4,
    ),
    "numbered trials of systems side by side": Table(
        "task,a_1,a_2,b_1,b_2  x,1,0,1,1  y,0,0,1,0",
        [("if each is a trial of 'a' and 'b'", "columns")], "a: x 1/2, y 0/2; b: x 2/2, y 1/2",
    ),
    "marks of raters side by side": Table(
        "model,task,rater1,rater2  a,x,1,1  a,y,0,1  b,x,1,0  b,y,1,1",
        [("several raters are not independent trials; read one", "columns")],
        "a: x 1/1, y 0/1; b: x 1/1, y 1/1",
    ),
    "a question and an outcome that are objects": Table(
        [{"task": {"id": q, "kind": "k"}, "run": t, "score": {"value": int(t >= q), "why": "?"}}
         for q in (1, 2) for t in (0, 1, 2)],
        [("Marks are in 'score.value'", "columns")], "1 2/3, 2 1/3", name="runs.jsonl",
    ),
    "trials of questions that are objects": Table(
        [{"task": {"id": f"q{q}"},
          "tries": [{"out": "a", "eval": {"passed": t > q}} for t in (0, 1)]} for q in (0, 1)],
        [("Marks are in 'tries..\\.eval.passed'", "records"),
         ("Marks are in 'eval.passed'", "columns")],
        "q0 1/2, q1 0/2", name="runs.jsonl",
    ),
    "marks by system and question in a JSON object": Table(
        {"a": {"x": [1, 0], "y": [1, 1], "z": [0, 0]}, "b": {"x": [0, 1], "y": [1, 0], "z": [1]}},
        [], "a: x 1/2, y 2/2, z 0/2; b: x 1/2, y 1/2, z 1/1", name="runs.json",
    ),
    "marks by question and system in a JSON object": Table(
        {"results": {"x": {"a": 1, "b": 0}, "y": {"a": True, "b": True}, "z": {"a": 0, "b": 1}}},
        [], "a: x 1/1, y 1/1, z 0/1; b: x 0/1, y 1/1, z 1/1", name="runs.json",
    ),
    "words of a judge and of a person": Table(
        "model,id,sample,llm_grade,expert_grade  m,x,0,correct,correct  m,x,1,incorrect,"
        "  m,y,0,incorrect,incorrect  m,y,1,correct,  m,z,0,correct,  m,z,1,correct,",
        [("if 'llm_grade' is what a judge says", "truth", "columns")], "x 1/2, y 1/2, z 2/2",
    ),
    "lists of records by system": Table(
        {"gpt": [{"q": "x", "ok": True}, {"q": "y", "ok": False}],
         "o": [{"q": "x", "ok": True}, {"q": "y", "ok": True}]},
        [("Each of '.key.' has as many rows of every question", "columns")],
        "gpt: x 1/1, y 0/1; o: x 1/1, y 1/1", name="runs.json",
    ),
    "the index of a data frame": Table(
        ",gpt,claude  x,1,0  y,0,0  z,1,1", [("if each column of marks is a system", "wide",
                                              "columns")],
        "gpt: x 1/1, y 0/1, z 1/1; claude: x 0/1, y 0/1, z 1/1",
    ),
    "a word error rate beside numbers of words": Table(
        "asr_system,clip,wer,n_words  a,x,.25,8  a,y,.5,9  b,x,.125,8  b,y,.75,9",
        [("Scores may be in 'wer'", "columns", "scores", "better")],
    ),
    "marks and nothing else": Table(
        "correct  1  0  1", [("one question column", "columns")], "all rows 2/3",
    ),
    "seconds alone": Table(
        "model,task,trial,seconds  a,x,0,3.5  a,x,1,4  b,x,0,2  b,x,1,9",
        [("Scores may be in 'seconds'", "columns", "scores", "better")],
    ),
    "answers beside the right ones": Table(
        "model,question,prediction,gold  a,x,B,B  a,y,B,C  b,x,A,B  b,y,C,C",
        [("right where 'prediction' equals 'gold'", "columns")],
        "a: x 1/1, y 0/1; b: x 0/1, y 1/1",
    ),
    "answers that are called so, beside the right ones": Table(
        "model,question,answer,gold  a,x,B,B  a,y,B,C  b,x,A,B  b,y,C,C",
        [("right where 'answer' equals 'gold'", "columns")], "a: x 1/1, y 0/1; b: x 0/1, y 1/1",
    ),
    "percentages of systems side by side": Table(
        "question,llama,qwen  q1,80%,60%  q2,20%,40%",
        [("Trials may be one number", "columns")],
        "llama: q1 4/5, q2 1/5; qwen: q1 3/5, q2 2/5", fill=5,
    ),
    "systems side by side with numbers of trials": Table(
        "task,run,alpha,beta  x,0,1,0  x,1,1,1  y,0,0,0  y,1,1,0",
        [("if each column of marks is a system: ", "wide", "columns")],
        "alpha: x 2/2, y 1/2; beta: x 1/2, y 0/2",
    ),
    "attempts side by side": Table(
        "model,task,att1,att2,att3  a,t1,1,0,1  a,t2,0,1,1  b,t1,0,0,1  b,t2,1,1,1",
        [("Marks are in 'att1', 'att2'", "columns")],
        "a: t1 2/3, t2 2/3; b: t1 1/3, t2 3/3",
    ),
    "marks of a judge, some by a person": Table(
        "system,question,trial,judge,human  a,x,0,1,1  a,x,1,1,  a,y,0,0,  a,y,1,0,0",
        [("if 'judge' is what a judge says", "columns", "truth")],
        "x 2/2, y 0/2",
    ),
    "ragas": Table(
        "user_input,response,reference,faithfulness  q1,r,x,1.0  q2,r,x,0.0",
        [("'faithfulness'", "columns")], "q1 1/1, q2 0/1",
    ),
    "marks called ex": Table(
        '{"question_id": 1, "sql": "S", "ex": 1, "usefulness": 1.0}'
        '  {"question_id": 0, "sql": "S", "ex": 0, "usefulness": 1.0}',
        [("Marks are in 'ex'\\. Name it:", "columns")], "1 1/1, 0 0/1",
        name="runs.jsonl",
    ),
    "marks called a score of annotation": Table(
        "id,annotation_exact_label,annotation_exact_score  a,x,1.0",
        [("Marks are in 'annotation_exact_score'", "columns")], "a 1/1",
    ),
    # JSON
    "arrays under another name, and marks within them": Table(
        {"run": {"per_dataset": 2}, "queries": [
            {"id": f"q{q}", "first_trial_correct": False, "trial_accuracy": 0.5,
             "trials": [{"trial": t + 1, "correct": t == q} for t in range(2)]} for q in range(2)]},
        [("arrays in 'queries'", "records"),
         ("Marks are in 'trials..\\.correct", "records")],
        "q0 1/2, q1 1/2", name="runs.json",
    ),
    "objects in lists, within objects that say of which system and question": Table(
        {"date": "x", "models": [{"name": name, "results": [
            {"task": f"q{q}", "attempts": [{"passed": (q + t) % 2 == 0 or name == "b"}
                                           for t in range(2)]} for q in range(2)]}
            for name in "ab"]},
        [("arrays in 'models.results.attempts'", "records")],
        "a: q0 1/2, q1 1/2; b: q0 2/2, q1 2/2", name="runs.json",
    ),
    "samples under the key of a system": Table(
        {name: {"acc": 0.5, "samples": [{"id": f"q{q}", "correct": q < bound} for q in range(3)]}
         for name, bound in (("gpt", 1), ("claude", 2))},
        [("Marks are in 'samples..\\.correct", "records")],
        "gpt: q0 1/1, q1 0/1, q2 0/1; claude: q0 1/1, q1 1/1, q2 0/1", name="runs.json",
    ),
    "lines with the results of a system": Table(
        [{"model": name, "id": 7, "results": [{"id": f"q{q}", "passed": q < bound}
                                              for q in range(2)]}
         for name, bound in (("a", 1), ("b", 2))],
        [("Marks are in 'results..\\.passed", "records")],
        "a: q0 1/1, q1 0/1; b: q0 1/1, q1 1/1", name="runs.jsonl",
    ),
    "two lists of objects with marks": Table(
        {"runs": [{"model": "a", "easy": [{"task": "x", "passed": True}],
                   "hard": [{"task": "y", "passed": False}]}]},
        [("if its objects are in easy: .* if its objects are in hard: ", "records")],
        "y 0/1", name="runs.json",
    ),
    "arrays within objects": Table(
        '{"task": "push", "metrics": {"episodes": [{"seed": 7, "success": false},'
        ' {"seed": 8, "success": true}]}}',
        [("arrays in 'metrics.episodes'", "records")], "push 1/2", name="runs.json",
    ),
    "lines that are runs of many questions": Table(
        [{"ts": f"2026-06-1{run}", "results": [
            {"eval": f"build-{q}", "prompt": f"p{q}", "passed": (q + run) % 2 == 0,
             "checks": [{"name": "c", "passed": True}]} for q in range(2)]} for run in range(3)],
        [("one question column", "records", {"columns": {"question": "eval"}})],
        "build-0 2/3, build-1 1/3", name="results.jsonl",
    ),
    "documents whose keys are questions, within an object": Table(
        '{"scored": {"q0": [true, true, false], "q1": [false]}, "pass_at_1": 33.3}',
        [("arrays in 'scored'", "records")], "q0 2/3, q1 0/1", name="runs.json",
    ),
    "documents whose keys are questions": Table(
        '{"q0": {"query": "x", "summary": {"reward": 0.0}},'
        ' "q1": {"query": "x", "summary": {"reward": 1.0}}}',
        [("Marks are in 'summary.reward'", "columns")], "q0 0/1, q1 1/1",
        name="runs.json",
    ),
    "rows of Every Eval Ever without marks": Table(
        [{"evaluation_id": "e", "sample_id": f"s{n}", "model_id": "m", "evaluation": {"score": n}}
         for n in range(2)],
        [("Marks are in 'evaluation.score'", "columns")], "s0 0/1, s1 1/1",
        name="runs.jsonl",
    ),
}  # fmt: skip


READ = {
    # names of columns and marks
    "counts by common names": Table("Task,Success Count,Total Attempts  a,1,3  b,2,3", [],
                                    "a 1/3, b 2/3"),
    "counts by other names": Table("task,total_trials,successful_trials  a,3,1  b,3,2", [],
                                   "a 1/3, b 2/3"),
    "n_correct of n_samples": Table("question,n_correct,n_samples  a,6,7  b,1,6",
        [("trials = column 'n_samples', successes = column 'n_correct'",)], "a 6/7, b 1/6"),
    "pass rates with their counts": Table(
        '{"id": "a", "pass_rate": 0.75, "pass_rate_total": 4, "pass_rate_passed": 3}', [], "a 3/4",
        name="runs.jsonl"),
    "exact matches": Table("q,trial,exact_match  a,1,1  a,2,0  a,3,  b,1,1",
        [("question = column 'q'.*outcome = column 'exact_match'",)],
        "a 1/2 and 1 missing, b 1/1", {"missing": "ignore"}),
    "yes and no": Table("q,correct  a,yes  b,no", [("no = 0, yes = 1",)], "a 1/1, b 0/1"),
    "FAIL and Pass": Table("q,correct  a,Pass  b,FAIL", [("FAIL = 0, Pass = 1",)], "a 1/1, b 0/1"),
    "wrong and RIGHT": Table("q,correct  a,RIGHT  b,wrong", [("wrong = 0, RIGHT = 1",)],
                             "a 1/1, b 0/1"),
    "several kinds of wrong": Table(
        "model,task,correct  a,t1,True  a,t2,timeout  b,t1,False  b,t2,True", [],
        "a: t1 1/1, t2 0/1; b: t1 0/1, t2 1/1",
        {"scores": {0: 0, 1: 1, "timeout": 0}, "success": "score > 0"}),
    "Yes and No": Table("q,correct  a,Yes  b,No", [("No = 0, Yes = 1",)], "a 1/1, b 0/1"),
    "marks called pass": Table(
        '{"id": "x", "tools_match": true, "pass": false}  {"id": "y", "tools_match": true,'
        ' "pass": true}', [], "x 0/1, y 1/1", name="runs.jsonl"),
    "runs of METR": Table(
        [{"task_id": f"t{q}", "run_id": f"r{q}{t}", "alias": "GPT", "model": "gpt",
          "score_binarized": t, "score_cont": 0.5} for q in "ab" for t in (0, 1)], [],
        "ta 1/2, tb 1/2", name="runs.jsonl"),
    "rollouts of NeMo Gym": Table(
        [{"_ng_task_index": n, "_ng_rollout_index": t, "reward": float(t == n),
          "responses_create_params": {}} for n in range(2) for t in range(2)], [],
        "0 1/2, 1 1/2", name="rollouts.jsonl"),
    "an id before a name and a prompt": Table(
        "name,prompt,id,passed  x,y,z,1", [("question = column 'id'",)], "z 1/1"),
    "a name before a prompt": Table(
        "prompt,name,passed  x,y,1", [("question = column 'name'",)], "y 1/1"),
    "a case before an input": Table(
        "input,case,passed  x,y,1", [("question = column 'case'",)], "y 1/1"),
    "an id of the task before a question": Table(
        "question,task_id,passed  x,y,1", [("question = column 'task_id'",)], "y 1/1"),
    "an id of the sample before an instruction": Table(
        "instruction,Sample ID,passed  x,y,1", [("question = column 'Sample ID'",)], "y 1/1"),
    "an id before a number of the row": Table(
        "sample_id,task_id,attempt,success  1,q0,1,0  2,q0,2,1", [], "q0 1/2"),
    "a name of a task before a number of the row": Table(
        "id,task_name,attempt,success  1,q0,1,0  2,q0,2,1", [], "q0 1/2"),
    "a uid of the row": Table("uid,task,attempt,success  1,q0,1,0  2,q0,2,1", [], "q0 1/2"),
    "text marks of JSON": Table('{"id": "a", "ok": "1"}  {"id": "a", "ok": "0"}', [], "a 1/2",
                                {"columns": {"outcome": "ok"}}, name="runs.jsonl"),
    "semicolons": Table("task;trial;passed  a;1;1  a;2;0", [], "a 1/2"),
    "two columns that number trials": Table(
        "task,seed,episode,success  a,0,0,1  a,0,1,1  a,1,0,0  a,1,1,0", [], "a 2/4"),
    "two columns of marks that agree": Table(
        "task,passed,solved  a,1,1  b,0,0", [("outcome = column 'passed'",)], "a 1/1, b 0/1"),
    "marks beside counts and constants": Table(
        "task,reward,passed,failed,done  t0,1,22,0,True  t1,1,22,0,True  t2,0,16,0,True", [],
        "t0 1/1, t1 1/1, t2 0/1"),
    "systems without a common question": Table(
        "system,question,correct  a,q1,1  a,q1,0  b,q2,1", [], "a: q1 1/2; b: q2 1/1",
        {"missing": "ignore"}),
    "a group called outcome": Table("task,outcome  a,1  a,1  b,0", [], "a 2/2, b 0/1",
                                    {"group": "outcome"}),
    "numbers beside marks": Table("task,won,score  a,1,7.5  b,0,2.5",
        [("outcome = column 'score'",)], "", {"scores": "numbers"}),
    # trials, systems and rates side by side
    "columns of trials": Table("task,trial_1,trial_2,Trial 3  a,1,0,1  b,1,1,",
        [("trials that were not run: 1",)], "a 2/3, b 2/2"),
    "columns of trials as a wide table": Table("task,trial_1,trial_2  a,1,0  b,1,1", [],
        "a 1/2, b 2/2", {"wide": True}),
    "columns of trials by name": Table("task,trial_1,Trial 2  a,1,0  b,1,1", [],
        "a 1/2, b 2/2", {"columns": {"outcome": "trial_1,Trial 2"}}),
    "columns of marks alone": Table("question,reference output,m1,m2  a,Paris,1,0  b,Rome,1,1",
        [("left out: columns 'reference output'",)], "m1: a 1/1, b 1/1; m2: a 0/1, b 1/1",
        {"wide": True}),
    "letters in a wide table": Table("q,note,m1  a,x,C  b,y,I", [], "a 1/1, b 0/1", {"wide": True}),
    "failures by system, with the same trials": Table("question,a,b,n  q0,1,2,4  q1,3,0,5", [],
        "a: q0 3/4, q1 2/5; b: q0 2/4, q1 5/5", {"columns": {"failures": "a,b", "trials": "n"}}),
    "rates by system, with the same trials": Table(
        "task,n_runs,direct,planning  t0,4,0.5,0.25  t1,2,1,0.5", [],
        "direct: t0 2/4, t1 2/2; planning: t0 1/4, t1 1/2",
        {"columns": {"rate": ["direct", "planning"], "trials": "n_runs"}}),
    "a column of trials that is a mode": Table(
        "id,mode,correct  a,x,1  a,y,0", [], "a 1/2", {"columns": {"trial": "mode"}}),
    # JSON
    "lists by question": Table('{"a": [1, 0], "b": [1, 1, 1]}', [], "a 1/2, b 3/3",
                               name="runs.json"),
    "ids by what became of them": Table('{"resolved": ["x-1"], "unresolved": ["x-2"]}', [],
                                        "x-1 1/1, x-2 0/1", name="mine.json"),
    "mlflow": Table(
        '{"columns": ["inputs", "outputs", "exact_match/v1"], "data": [["q1", "o", 1],'
        ' ["q2", "o", 0]], "index": null}', [], "q1 1/1, q2 0/1",
        {"columns": {"outcome": "exact_match/v1"}}, name="eval_results_table.json"),
    "marks within lists of a document": Table(
        '[{"id": "a", "infos": [{"r": 1}, {"r": 0}]}, {"id": "b", "infos": [{"r": 1}]}]', [],
        "a 1/2, b 1/1", {"columns": {"question": "id", "outcome": "infos[].r"}}, name="e.json"),
    "marks within lists of lines": Table(
        '{"id": "a", "infos": [{"r": 1}, {"r": 0}]}', [], "a 1/2",
        {"columns": {"question": "id", "outcome": "infos[].r"}}, name="e.jsonl"),
    "marks within objects that are systems": Table(
        '[{"id": "a", "gpt-4.1": {"ok": true}, "o3": {"ok": false}},'
        ' {"id": "b", "gpt-4.1": {"ok": true}, "o3": {"ok": true}}]', [],
        "gpt-4.1: a 1/1, b 1/1; o3: a 0/1, b 1/1",
        {"wide": True, "columns": {"question": "id", "outcome": "ok"}}, name="by_model.json"),
    "a line of totals": Table(
        '{"task_id": "a", "completion": "x", "passed": true, "result": "passed"}'
        '  {"task_id": "b", "completion": "x", "passed": false, "result": "failed"}'
        '  {"pass@1": 0.5}', [], "a 1/1, b 0/1", name="samples.jsonl_results.jsonl"),
    "nested fields of lines": Table(
        '{"task": {"id": "x"}, "info": {"reward": 1.0}}'
        '  {"task": {"id": "x"}, "info": {"reward": 0.0}}', [], "x 1/2",
        {"columns": {"question": "task.id", "outcome": "info.reward"}}, name="runs.jsonl"),
    "nested fields of a document, one of them missing": Table(
        '[{"task": {"id": "x"}, "info": {"reward": 1.0}}, {"task": {"id": "x"}}]',
        [("question 'x' has 1 missing outcomes", {"missing": "wrong"})], "x 1/2 and 1 missing",
        {"columns": {"question": "task.id", "outcome": "info.reward"}}, name="runs.json"),
    "records of a document": Table(
        '{"model": "m", "performances": [{"id": "x", "score": 1}, {"id": "x", "score": 0}],'
        ' "mean": 0.5}', [], "x 1/2", name="runs.json"),
    "records of a document by their place": Table(
        '{"model": "m", "performances": [{"id": "x", "score": 1}]}', [], "x 1/1",
        {"records": "performances"}, name="runs.json"),
    "a wide table of lists, with named questions": Table(
        'alpha,which,beta  "[1, 0]",x,"[1, 1]"  "[0, 0]",y,"[0, 1]"', [],
        "alpha: x 1/2, y 0/2; beta: x 2/2, y 1/2",
        {"wide": True, "columns": {"question": "which"}}),
    # what is doubted without a remedy
    "a question with many times the trials of others": Table(
        [{"task": q, "passed": 1} for q in [*"aabbccdd", *["unknown"] * 12]],
        [("CHECK: question 'unknown' of 'system' has 12 trials, and the median question 2",)],
        "a 2/2, b 2/2, c 2/2, d 2/2, unknown 12/12", name="runs.jsonl"),
    "trials and failures": Table("model,question,n,n_failed  a,x,5,2  a,y,4,4", [], "x 3/5, y 0/4"),
    "one success a question": Table(
        "task,n,c  q0,1,1  q1,2,1  q2,3,1  q3,1,1  q4,2,1  q5,3,1",
        [("CHECK: no question of 'system' has two successes",)],
        "q0 1/1, q1 1/2, q2 1/3, q3 1/1, q4 1/2, q5 1/3"),
}  # fmt: skip


@pytest.mark.parametrize("case", PROPOSED | READ)
def test_a_table_is_read_after_what_its_messages_propose(tmp_path, case):
    table = (PROPOSED | READ)[case]
    if isinstance(table.content, dict):
        table.content = json.dumps(table.content)
    path, options = written(tmp_path / table.name, table.content), dict(table.options)
    for words, *arguments in table.steps:
        _, message = told(path, options)
        match = re.search(words, message)
        assert match, message
        for argument in arguments:
            if isinstance(argument, str):
                after = message[match.end() :]
                after = after if f"{argument}=" in after else message[match.start() :]
                argument = {argument: filled(remedy(after, argument), table.fill)}
            for name, value in argument.items():
                earlier = options.get(name)
                options[name] = earlier | value if isinstance(earlier, dict) else value
    data, _ = told(path, options)
    assert data is not None, told(path, options)
    assert not table.reads or cells(data) == table.reads


REFUSED = {
    "one error names all that is not clear": (
        "alpha,beta,gamma  x,y,0.5", {}, "one outcome column.*and one question column",
        "if all rows are trials of one question.*columns=\\{'question': '\\(one\\)', 'outcome': "),
    "a leaderboard": ("model,mmlu,gsm8k  A,71.2,55.0  B,65.3,60.1  C,80.1,77.7", {},
                      "each row is of another 'model', as in a leaderboard"),
    "a board of a game": ("x,o,winner  A,B,X", {}, "one outcome column.*one question column"),
    "two ids": ("task_id,sample_id,passed  a,b,1", {}, "several could be it"),
    "a number and a name that agree": ("id,task,success  0,t0,1  1,t0,0  2,t1,1", {},
                                       "several could be it: \\['id', 'task'\\]"),
    "a prompt and a task": ("prompt_id,task,hallucination_rate  p1,Safety,1.0", {},
                            "several could be it: .'prompt_id', 'task'."),
    "text where there are marks": (
        "task,win,score,outcome  a,True,7.5,out  b,True,2.5,x", {},
        "several could be it: \\['score', 'outcome'\\].*are in 'win'"),
    "constants beside marks": ("task,verdict,exit_code,energy  a,1,0,0.0  b,0,0,0.0", {},
                               "Marks are in 'verdict'\\."),
    "a mark that ends like a rate": ("task,generated_ok  a,1  b,0", {},
                                     "Marks are in 'generated_ok'"),
    "files that were joined": ("task,passed  x,1  task,passed  y,0", {},
                               "row 3.*repeats the names of the columns"),
    "a remark above the names": ("# exported  task,passed  x,1", {},
                                 "remove lines above the names of the columns"),
    "decimal commas": ("task;score  x;0,25  x;0,5", {}, "decimal point in place of the comma"),
    "successes and trials in some cells": ("task,solved  x,1/4  y,1", {},
                                           "the successes and the trials of '1/4' in a column"),
    "successes of fewer trials in a cell": ("task,solved  x,5/4  y,4/4",
                                            {"columns": {"rate": "solved"}},
                                            "5 successes in 4 trials at row 2"),
    "several metrics of a trial": ("task,metric,score  x,f1,1  x,em,0  y,f1,0  y,em,0", {},
                                   "must be of one metric or rater;.*where=\\{'metric': 'f1'\\}"),
    "lists of objects": ('{"id": "x", "r": [{"a": 1}]}  {"id": "y", "r": [{"a": 2}]}', {},
                         "one outcome column.*Scores may be in 'r\\[\\].a'"),
    "names below merged cells": (",gpt,,o,  task,a,b,a,b  x,1,0,1,1", {},
                                 "names in one row; 3 of 5 have none"),
    "nothing": ("trial,condition,success  1,a,  2,a,", {}, "nothing is in 'success'"),
    "maybe": ("q,correct  a,yes  b,maybe", {}, "'maybe' at row 3"),
    "capitals like no word": ("q,correct  a,yes  b,YeS", {}, "'YeS' at row 3"),
    "systems without a common question": (
        "system,question,correct  a,q1,1  a,q1,0  b,q2,1", {},
        "no two of the 2 systems tried the same question.*cannot be compared"),
    "a question that one system did not try": (
        "system,question,correct  a,q1,1  b,q2,1  b,q1,1", {},
        "system 'a', question 'q2' has no trials"),
    "a misspelt group": ("task,passed,domain  a,1,x", {"group": "doman"},
                         "there is no column 'doman' in .* Is 'doman' meant as 'domain'"),
    "a column to ignore that is none": ("task,passed  a,1", {"ignore": ["pased"]},
                                        "'pased' is none"),
    "a trial twice by two numbers": (
        "task,seed,episode,success  a,0,0,1  a,0,1,1  a,0,0,1", {},
        "one trial column; several could be it"),
    "a blank between trials": ("task,trial_1,trial_2,trial_3  a,1,,1  b,1,1,", {}, "missing"),
    "half a success in a wide table": ("q,m1  a,1  b,0.5", {"wide": True}, "0.5"),
    "a wide table without marks": ("q,note  a,x  b,y", {"wide": True},
                                   "none of \\['note'\\] holds any"),
    "successes of more systems than failures": (
        "q,a,b,n  x,1,2,4", {"columns": {"successes": ["a", "b"], "failures": "n"}},
        "as many systems"),
    "trials of more systems than successes": (
        "q,a,b,n  x,1,2,4", {"columns": {"successes": "n", "trials": "a,b"}}, "as many systems"),
    "a percentage of a number of trials that cannot be": (
        "id,pass@1  a,90  b,30", {"columns": {"rate": "pass@1", "trials": 3}},
        "percentages of 3 trials"),
    "a row that is left out by where": ("task,arm,passed  a,x,1", {"where": {"arm": "y"}},
                                        "where must leave rows"),
    "a column of where that is none": ("task,arm,passed  a,x,1", {"where": {"mood": "y"}},
                                       "'mood' is none.*'arm'"),
    "a cell of a list that is no outcome": (
        'id,outcome  x,"[1, 0]"  y,"[1, maybe]"', {}, "maybe.*row 3"),
    "an outcome of a wide table": ("id,alpha  x,1", {"wide": True, "columns": {"outcome": "alpha"}},
                                   "wide table"),
    "a share in a wide table": ("id,alpha  x,0.75", {"wide": True}, "0.75.*'alpha'"),
    "names of columns in two rows": ("s,a,a,b,b  t,r1,r2,r1,r2  q,,,,  x,1,0,1,1", {},
                                     "names in one row; 'a', 'b' are there more than once"),
    "merged cells": ("model,task,passed  a,x,1  ,y,0", {}, "row 3 has none.*fill it down"),
    "rows written again": ("id,trial,passed  x,0,1  x,1,0  x,0,1  x,1,0", {},
                           "rows 2 and 4 both.* 2 rows equal an earlier one.*awk"),
    "rows that contradict earlier ones": ("id,trial,passed  x,0,1  x,1,0  x,0,1  x,1,1", {},
                                          "rows 2 and 4 both .*trials; or, if every row"),
    "records at two places": (
        '{"results": [{"id": "x", "score": 1}], "items": [{"id": "x", "score": 1}]}',
        {"format": "json"}, "in one place.*records='results'"),
    "records at no place of a document": (
        '{"results": [{"id": "x", "score": 1}]}', {"format": "json", "records": "elsewhere"},
        "at elsewhere"),
    "records at no place": ('{"ts": 1, "results": [{"eval": "b", "passed": true}]}',
                            {"records": "runs"}, "line 1 must have a list of records at runs"),
    "a system that the first rows lack": (
        '{"task": "a", "passed": 1}  {"task": "a", "passed": 1, "model": "B"}', {},
        "'model' must identify the system of every row; line 1"),
    "a line without an id": (
        '{"task_id": "a", "completion": "x", "passed": true, "result": "passed"}'
        '  {"pass@1": 0.5, "completion": "y"}', {"format": "human-eval"},
        "line 2 must have the field 'task_id'"),
    "two right answers of one text": (
        '{"item": {"question": "Where?", "label": "hall"}, "correct": 1}'
        '  {"item": {"question": "Where?", "label": "attic"}, "correct": 0}',
        {"columns": {"question": "item.question"}}, "differ in column 'item.label'"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_table_that_is_not_clear_is_refused(tmp_path, case):
    content, options, *words = REFUSED[case]
    name = "runs.jsonl" if content.startswith("{") else "runs.csv"
    path = written(tmp_path / name, content)
    refused(lambda: bk.load(path, **options), *words)


NOT_DOUBTED = {
    "numbered runs": "run,case_id,correct  run 1,c,0  run 1,d,1  run 2,c,1  run 2,d,0",
    "as many trials of each": "task,passed  a,1  a,0  b,1  b,0  c,1  c,1",
    "one count of trials": "task,n,c  q0,3,1  q1,3,1  q2,3,1  q3,3,1",
    "an answer that is the same in both rows":
        "id,response,passed  a,A,1  a,A,0  b,A,1  b,A,0  c,A,1  c,A,0",
    "an answer of one row alone":
        "id,response,passed  a,1,1  a,2,0  b,3,1  b,4,0  c,5,1  c,6,0",
    "marks of another kind, which vary":
        "id,safe,passed  " + "  ".join(
            f"{n},{mark},1" for n, marks in enumerate(("ynyy", "yyyy", "nnyn", "yynn", "nnnn"))
            for mark in marks),
    "errors of few kinds":
        "id,fault,passed  " + "  ".join(
            f"{n},{fault},1" for n, faults in enumerate(("abc", "a__", "_bb", "___", "_c_", "c__"))
            for fault in faults),
    "the best of the trials":
        "id,chosen,passed  " + "  ".join(
            f"{n},{int(trial == n % 4)},1" for n in range(6) for trial in range(4)),
    "a mode that is the number of the trial":
        "id,trial,mode,passed  a,0,0,1  a,1,1,0  b,0,0,1  b,1,1,0  c,0,0,1  c,1,1,0",
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_DOUBTED)
def test_a_table_that_is_clear_is_not_doubted(tmp_path, case):
    path = written(tmp_path / "runs.csv", NOT_DOUBTED[case])
    assert "CHECK" not in bk.load(path).card()


def test_kinds_of_questions_are_told_also_where_rows_are_missing(tmp_path) -> None:
    """Without 15% of the rows no design is even; the name of the column says what it is."""
    rng = np.random.default_rng(3)
    rows = [
        f"{model},{language},i{item},{number},{number % 2}"
        for model, language in product("ab", ("en", "de", "sw"))
        for item in range(20)
        for number in range(3)
    ]
    kept = [row for row in rows if rng.random() > 0.15]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(["model,language,item,number,correct", *kept]))
    with pytest.warns(bk.OutcomeWarning, match="rows of a question differ in column 'language'"):
        bk.load(path)


@pytest.mark.parametrize(("sizes", "trials", "run"), [
    ((20, 20), 5, 1.0), ((20, 20), 1, 0.95),  # some trials were not run
    ((60, 40, 10), 3, 1.0), ((60, 40, 10), 1, 1.0), ((20,) * 15, 2, 1.0),
])  # fmt: skip
def test_suites_with_the_same_ids_are_not_pooled_in_silence(tmp_path, sizes, trials, run):
    rng = np.random.default_rng(7)
    rows = [
        f"{model},s{suite},{question},1"
        for model in "ab"
        for suite, size in enumerate(sizes)
        for question in range(size)
        for _ in range(trials)
        if rng.random() < run
    ]
    path = written(tmp_path / "runs.csv", "  ".join(["model,part,id,correct", *rows]))
    data = bk.load(path, columns={"question": ["part", "id"]}, missing="ignore")
    assert data.dataset.sizes["question"] == sum(sizes)
    assert "differ in column" not in data.card()
    with pytest.warns(bk.OutcomeWarning, match="differ in column 'part'"):
        bk.load(path, missing="ignore")


@pytest.mark.parametrize(("name", "values"), [
    ("hallucination_rate", (0.5, 0.25)), ("max_rate", (0.86, 1.2)), ("error_rate", (0.0, 0.5)),
    ("episode_len", (512, 500)), ("success_seconds", (30, 80)), ("evidence_count", (53, 30)),
])  # fmt: skip
def test_what_is_measured_is_not_proposed_as_counts(tmp_path, name, values):
    rows = [f"{target},{value},80,90" for target, value in zip("ab", values, strict=True)]
    path = written(tmp_path / "runs.csv", "  ".join([f"target,{name},solved_total,n_items", *rows]))
    message = refused(lambda: bk.load(path), "one outcome")
    assert not re.search(rf"'(rate|successes|failures|trials)': '{name}'", message), message


LISTS = ("results", "rows", "cases", "records", "examples")
ITEMS = ("id", "prompt", "input", "question", "case", "name", "task_name", "instance_id",
         "sample_id", "Sample ID", "user_input", "instruction", "taskName")  # fmt: skip
MARKS = ("passed", "correct", "is_correct", "resolved", "success", "score", "isCorrect")


@pytest.mark.parametrize("within", LISTS)
@pytest.mark.parametrize("item", ITEMS)
def test_own_json_of_an_evaluation(tmp_path, within, item):
    for mark in MARKS:
        rows = [{item: "a", mark: True, "latency": 2.5}, {item: "b", mark: False, "latency": 1}]
        content = json.dumps({"model": "m", "accuracy": 0.5, within: rows})
        data = bk.load(written(tmp_path / "e.json", content))
        assert cells(data) == cells(bk.load(pd.DataFrame(rows))) == "a 1/1, b 0/1"


# ------------------------------------------------------------------ scores, rates, order


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_scores_that_are_rounded_in_the_remedy_do_not_loop(tmp_path, ending):
    """It proposed 0.93 for .9299999, which is none of the outcomes, for ever."""
    frame = pd.DataFrame({"question": [*"aaaabbbb"], "score": [0, 0.9299999, 1 / 3, 1] * 2})
    path = tmp_path / f"runs.{ending}"
    {
        "csv": lambda: frame.to_csv(path, index=False),
        "parquet": lambda: frame.to_parquet(path),
        "jsonl": lambda: written(path, frame.to_dict("records")),
    }[ending]()
    message = refused(lambda: bk.load(path), "not one of 0, 1.*scores='numbers'")
    scores = remedy(message.partition("another score: ")[2], "scores")  # all of them at once
    scores = {value: float(value) if score == "FILL" else score for value, score in scores.items()}
    assert totals(bk.load(path, scores=scores)) == [2, 2, 2, 2, 0]
    success = remedy(message, "success")
    for options in ({"success": success}, {"success": success, "scores": "numbers"}):
        assert totals(bk.load(path, **options)) == [4, 4, 0]


def test_marks_beside_rewards_are_proposed_and_a_rule_for_the_rewards(tmp_path):
    rows = [
        {
            "example_id": n,
            "prompt": f"p{n}",
            "completion": "x",
            "reward": 0.3 * n,
            "correct": float(n == 1),
            "style": 0.5,
        }
        for n in range(4)
    ]
    path = written(tmp_path / "results.jsonl", rows)
    message = refused(lambda: bk.load(path), "Marks of 0 and 1 alone are of: scorer='correct'")
    assert totals(bk.load(path, scorer=remedy(message, "scorer"))) == [3, 1, 0]
    rule = remedy(message, "success")  # of 0, .3, .6, .9 two reach the middle of shares
    assert totals(bk.load(path, scores="numbers", success=rule)) == [2, 2, 0]


WORDS = "agent,scenario,status  a,x,PASSED  a,x,ERROR  a,y,FAILED  a,y,PASSED"
TRUE_OR_TIMEOUT = [{"task": task, "correct": mark} for task, mark in
                   (("x", True), ("x", "timeout"), ("y", False), ("y", True))]  # fmt: skip
GERMAN = ("Aufgabe,Versuch,richtig  1,0,ja  1,1,nein  2,0,ja  2,1,ja  3,0,nein  3,1,ja  4,0,ja"
          "  4,1,ja  5,0,nein  5,1,nein")  # fmt: skip


@pytest.mark.parametrize(("content", "words", "means", "missing"), [
    (WORDS, "Score every outcome that may occur: ", {"x": 0.5, "y": 0.5}, 0),
    (WORDS, "if 'ERROR' was not run: ", {"x": 1.0, "y": 0.5}, 1),
    (TRUE_OR_TIMEOUT, "Score every outcome that may occur: ", {"x": 0.5, "y": 0.5}, 0),
    (TRUE_OR_TIMEOUT, "if 'timeout' was not run: ", {"x": 1.0, "y": 0.5}, 1),
    (GERMAN, "Score every outcome that may occur: ", {"1": 0.5, "2": 1, "3": 0.5, "4": 1, "5": 0},
     0),
    (GERMAN, "; or, ", {"1": 0.5, "2": 0, "3": 0.5, "4": 0, "5": 1}, 0),
])  # fmt: skip
def test_words_for_marks_are_read_with_the_scores_that_are_proposed(
    tmp_path, content, words, means, missing
):
    """The mean score of every question, counted by hand, from the options as they are printed."""
    path = written(tmp_path / ("runs.csv" if isinstance(content, str) else "runs.jsonl"), content)
    _, message = told(path, {})
    options = {}
    if "one outcome column" in message:
        options["columns"] = remedy(message, "columns")
        assert str(remedy(message, "scores")) in message
        _, message = told(path, options)
    _, _, proposed = message.partition(words)
    options["scores"] = remedy(proposed, "scores")
    if missing:
        options["missing"] = remedy(proposed, "missing")
    data = bk.load(path, **options)
    count, score = data.dataset["count"].isel(system=0), data.dataset["score"]
    found = (count * score).sum("category") / count.sum("category")
    assert dict(zip(map(str, count["question"].values), found.values, strict=True)) == means
    assert int(data.dataset["missing"].sum()) == missing


def test_a_number_may_stand_for_a_trial_that_was_not_run(tmp_path):
    path = written(tmp_path / "runs.csv", "task,correct  x,1  x,-1  y,0  y,1")
    scores = {0: 0, 1: 1, -1: None}
    assert cells(bk.load(path, scores=scores, missing="ignore")) == "x 1/1 and 1 missing, y 1/2"
    marks = np.array([[1, -1], [0, 1]])
    data = bk.tally(marks, scores=scores, missing="ignore")
    assert data.successes.values.tolist() == [[1, 1]]
    assert data.trials.values.tolist() == [[1, 2]]
    refused(lambda: bk.tally(marks, scores=scores), "missing")


def test_what_a_named_outcome_may_be_instead(tmp_path):
    """A rate that is a score, and answers that are scored as if they were marks."""
    percentages = "model,item,seed,score_pct  a,x,0,68.5  a,x,1,60  b,x,0,10  b,x,1,20.5"
    path = written(tmp_path / "percent.csv", percentages)
    message = refused(
        lambda: bk.load(path, columns={"rate": "score_pct", "trials": 4}), "of each trial"
    )
    _, _, proposed = message.partition("of each trial: ")
    options = {name: remedy(proposed, name) for name in ("columns", "scores")}
    assert bk.load(path, **options).trials.values.tolist() == [[2], [2]]
    answers = "model,question,prediction,gold  a,x,B,B  a,y,B,C  b,x,A,B  b,y,C,C"
    path = written(tmp_path / "answers.csv", answers)
    asked = {"columns": {"outcome": "prediction"}, "scores": {"A": 0, "B": 1, "C": 0}}
    _, said = told(path, asked)
    _, _, proposed = said.partition("is a trial right where both are equal")
    data = bk.load(path, columns=remedy(proposed, "columns"))
    assert cells(data) == "a: x 1/1, y 0/1; b: x 0/1, y 1/1"


@pytest.mark.parametrize("encoding", ["utf-16", "windows-1252"])
def test_text_that_is_not_utf8_is_converted_by_what_is_said(tmp_path, monkeypatch, encoding):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "essai.csv"
    path.write_bytes("task,passed\ntâche,1\n".encode(encoding))
    said = " ".join(run("doctor", path).stdout.split())
    assert "must be UTF-8 text" in said
    command = said.partition("perhaps by: ")[2].removesuffix(".").removeprefix("iconv ")
    _, written_in, _, _, source, _, target = shlex.split(command)
    Path(target).write_bytes(Path(source).read_bytes().decode(written_in).encode("utf-8"))
    assert cells(bk.load(target)) == "tâche 1/1"


def test_very_many_scores_are_not_listed(tmp_path):
    path = written(tmp_path / "runs.jsonl", [{"id": n, "score": n / 50} for n in range(50)])
    assert "0.02: ..." not in refused(lambda: bk.load(path), "scores='numbers'")


def test_a_rule_that_nothing_can_fail_is_refused(tmp_path):
    """Of right and wrong all may be right."""
    path = written(tmp_path / "right.jsonl", [{"task": "a", "score": 1}] * 3)
    assert totals(bk.load(path, success="score >= 0.9")) == [0, 3, 0]
    refused(lambda: bk.load(path, success="score >= 0"), "success must split the scores")
    letters = written(tmp_path / "letters.csv", "task,score  a,C  a,I")
    assert totals(bk.load(letters, success="score >= 0.9")) == [1, 1, 0]


@pytest.mark.parametrize("marks", [["N"], ["N", "I"], ["P", "N"]])
def test_scores_of_marks_of_inspect_that_are_few(tmp_path, marks):
    order = iter(marks * 24)

    def change(sample):
        sample["scores"]["match"]["value"] = next(order)

    path = as_document(tmp_path / "log.json", change)
    message = refused(lambda: bk.load(path), "Score every outcome that may occur")
    scores = filled(remedy(message, "scores"), 0.5)
    assert {*marks} <= {*scores}
    assert int(bk.load(path, scores=scores).trials.sum()) == 24


@pytest.mark.parametrize(("rates", "kind"), [
    ((90.0, 30.1, 0, 100), "percent"), ((0.9, 0.3, 0, 1), "share"),
    (("90", "30.0", "0", "100"), "percent"),
])  # fmt: skip
@pytest.mark.parametrize("trials", [10, "10"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_percentages_with_the_number_of_trials_that_is_given(tmp_path, rates, kind, trials, ending):
    frame = pd.DataFrame({"id": [*"abcd"], "pass@1": rates})
    path = tmp_path / f"r.{ending}"
    if ending == "csv":
        frame.to_csv(path, index=False)
    else:
        written(path, frame.to_dict("records"))
    message = refused(lambda: bk.load(path, columns={"rate": "pass@1"}), "number of trials beside")
    fitting = 10 if rates[0] == "90" else "FILL"  # others have too few digits to say
    assert remedy(message, "columns") == {"rate": "pass@1", "trials": fitting}
    for columns in ({"rate": "pass@1", "trials": trials}, filled(remedy(message, "columns"), 10)):
        data = bk.load(path, columns=columns)
        assert cells(data) == "a 9/10, b 3/10, c 0/10, d 10/10"
        assert f"pass@1 ({kind})" in data.card()


def test_rates_that_fit_fewer_trials_than_are_named(tmp_path):
    """Fifths: of ten trials each would be so with a chance of a half, ten of them with 1/1024."""
    rates = [0.2, 0.4, 0.6, 0.8, 1.0] * 3
    path = tmp_path / "rates.csv"
    pd.DataFrame({"id": range(15), "pass_rate": rates}).to_csv(path, index=False)
    message = refused(lambda: bk.load(path), "the rates fit 5, or a multiple")
    assert remedy(message, "columns") == {"rate": "pass_rate", "trials": 5}
    assert "CHECK" not in bk.load(path, columns={"rate": "pass_rate", "trials": 5}).card()
    with pytest.warns(bk.OutcomeWarning, match="fit 5 of each question"):
        bk.load(path, columns={"rate": "pass_rate", "trials": 10})


def runs_with_times(systems="ab", questions=6, trials=4):
    """Rows of trials that are not numbered, each with a time of its own."""
    rng = np.random.default_rng(7)
    return [
        {
            "model": system,
            "task": f"q{question}",
            "seconds": round(float(rng.random()), 5),
            "reply": "yes" if mark else "no",
            "passed": mark,
        }
        for system in systems
        for question in range(questions)
        for mark in rng.integers(0, 2, trials).tolist()
    ]


@pytest.mark.parametrize("copied", [slice(0, 3), slice(0, None)])
def test_rows_that_equal_another_also_in_their_time_are_copies(tmp_path, copied):
    rows = runs_with_times()
    path = written(tmp_path / "runs.jsonl", rows)
    assert int(bk.load(path).trials.sum()) == 48
    twice = written(tmp_path / "twice.jsonl", [*rows, *rows[copied]])
    number = len(rows[copied])
    words = f"{number} of {48 + number} equal an earlier one in every column, also in 'seconds'"
    remedy = refused(lambda: bk.load(twice), words).partition("rows that are lines, ")[2]
    refused(lambda: bk.tally(pd.DataFrame([*rows, *rows[copied]])), words, "drop_duplicates")
    command = remedy.partition(" keeps each once")[0]
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    assert int(bk.load(tmp_path / "once.jsonl").trials.sum()) == 48


def test_equal_rows_of_trials_that_nothing_tells_apart_are_trials(tmp_path):
    """Marks, short answers and rounded times come again by chance; a prompt is of the question."""
    table = pd.DataFrame(runs_with_times())
    marks = table.drop(columns="seconds")
    for frame in (marks, table.round(1), marks.assign(prompt="Is it " + table["task"] + "?")):
        rows = frame.to_dict("records")
        assert int(bk.load(written(tmp_path / "runs.jsonl", rows)).trials.sum()) == 48
    answers = [
        {
            "task": f"q{number // 4}",
            "passed": int(number % 4 < 2),
            "final": number // 4 if number % 4 < 2 else 90 + number,
        }
        for number in range(60)
    ]
    assert int(bk.load(written(tmp_path / "answers.jsonl", answers)).trials.sum()) == 60


def test_a_row_of_several_trials_that_is_there_twice_is_a_copy(tmp_path):
    lines = ["task,run_1,run_2", "a,1,0", "b,0,1", "c,1,1"]
    path = tmp_path / "wide.csv"
    path.write_text("\n".join([*lines, "b,0,1"]))
    refused(lambda: bk.load(path), "1 of 4 equal an earlier one .* also in 'run_1', 'run_2'")
    path.write_text("\n".join([*lines, "b,1,1"]))  # two more trials
    assert cells(bk.load(path)) == "a 1/2, b 3/4, c 2/2"


def test_names_with_signs_and_samples_that_number_the_trials(tmp_path):
    rows = [
        {"Task": task, "Attempt #": number, "Correct?": mark, "Seconds": 1.0}
        for task in "ab"
        for number, mark in enumerate((1, 0, 0))
    ]
    path = tmp_path / "sheet.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    used = "question = column 'Task', trial = column 'Attempt #', outcome = column 'Correct?'"
    assert used in bk.load(path).card()
    frame = pd.DataFrame(rows).rename(columns={"Attempt #": "sample"})
    frame.to_csv(path, index=False)
    assert "trial = column 'sample'" in bk.load(path).card()
    frame.assign(sample=5).to_csv(path, index=False)  # which numbers nothing
    data = bk.load(path)
    assert "no trial column" in data.card()
    assert cells(data) == "a 1/3, b 1/3"


def test_copies_of_numbered_rows_are_not_blamed_on_another_column(tmp_path):
    rows = [
        {
            "task": task,
            "attempt": number,
            "reviewer": "AB"[(number + len(task)) % 2],
            "passed": number % 2,
        }
        for task in ("a", "bb")
        for number in range(4)
    ]
    path = tmp_path / "reviewed.csv"
    pd.DataFrame([*rows, *rows[:3]]).to_csv(path, index=False)
    message = refused(lambda: bk.load(path), "3 rows equal an earlier one in every column")
    assert "reviewer" not in message
    assert "ignore" not in message


@pytest.mark.parametrize("columns", [None, {"outcome": "tests_passed"}])
def test_points_of_totals_that_vary_are_no_scores(tmp_path, columns):
    rows = [
        {
            "model": "m",
            "task": f"q{q}",
            "seed": t,
            "tests_passed": (q * t) % 3,
            "tests_total": 2 + 10 * (q % 2),
        }
        for q in range(6)
        for t in range(3)
    ]
    path = written(tmp_path / "points.jsonl", rows)
    message = refused(
        lambda: bk.load(path, columns=columns, scores="numbers"), "tests_passed / tests_total"
    )
    assert remedy(message, "ignore") == ["tests_total"]
    same = written(tmp_path / "same.jsonl", [{**row, "tests_total": 12} for row in rows])
    named = {"outcome": "tests_passed"}
    for file, options in ((same, {}), (path, {"ignore": ["tests_total"]})):
        assert bk.load(file, columns=named, scores="numbers", **options).trials.sum() == 18


def test_numbers_do_not_depend_on_the_order_of_rows(tmp_path):
    """More numbers than levels: each is rounded to one of two, whatever the order of rows."""
    rows = [
        {"task": f"q{q:02}", "trial": t, "score": round((q * 37 + t * 101) % 997 / 997, 4)}
        for q in range(40)
        for t in range(5)
    ]
    tables = (rows, rows[::-1], sorted(rows, key=lambda row: row["score"]))
    paths = [written(tmp_path / f"{n}.jsonl", table) for n, table in enumerate(tables)]
    levels = [bk.load(path, scores="numbers").dataset["count"] for path in paths]
    for other in levels[1:]:
        assert (other.sel(question=levels[0]["question"]).values == levels[0].values).all()


def test_a_column_of_seconds_is_not_silently_better_when_higher(tmp_path):
    rng = np.random.default_rng(3)
    rows = [
        {"system": system, "question": f"q{q}", "trial": t, "latency_s": rng.gamma(3, 2)}
        for system in "ab"
        for q in range(12)
        for t in range(4)
    ]
    path = written(tmp_path / "runs.jsonl", rows)
    asked = (path, "--column", "outcome=latency_s", "--score", "numbers")
    printed = run("evaluate", *asked, "--seed", 1).output
    for words in ("CHECK: higher scores are taken as better", "if it is: --better lower", "max@2"):
        assert words in " ".join(printed.split())
    assert "max@1" not in printed  # the mean
    assert len(printed.splitlines()) < 60  # no table of 51 levels
    report = succeeded("doctor", *asked, "--better", "lower")
    assert "CHECK" not in report
    assert "Metrics: mean, min@2,4" in report
    for options in ({"success": "score <= 5"}, {"scores": "numbers", "better": "lower"}):
        assert "CHECK" not in bk.load(path, columns={"outcome": "latency_s"}, **options).card()
    scored = pd.read_json(path, lines=True).rename(columns={"latency_s": "score"})
    assert "CHECK" not in bk.tally(scored, scores="numbers").card()


# ------------------------------------------------------------------ retries


def test_retries_until_success_are_recognised(tmp_path):
    """Observed: first attempts, and what was solved within k attempts; not the exchangeable law."""
    rng = np.random.default_rng(5)
    p = rng.beta(1, 1, 300)
    rows, first, within = [], 0, 0
    for question in range(300):
        for number in range(3):
            solved = int(rng.random() < p[question])
            rows.append({"task": f"q{question}", "attempt": number + 1, "passed": solved})
            first += solved * (number == 0)
            if solved:
                within += 1
                break
    data = bk.load(written(tmp_path / "runs.jsonl", rows))
    assert "trials of a question end at its first success" in data.card()
    assert f"{first / 300:.4f} (first attempts)" in data.card()
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
    table = bk.table(bk.evaluate(data, "pass@1", group=["one", "other"] * 150, rng=1))
    assert table["estimate"].iloc[0] == pytest.approx(first / 300)
    assert bk.tally(data, systems=["solver"]).stopped.tolist() == [True]
    gate = bk.decide.gate(data, data, metric="pass@1", margin=0.2, rng=1)
    assert bk.Result(gate).data.stopped.tolist() == [True, True]
    shuffled = sorted(rows, key=lambda row: -row["attempt"])  # by the number, not by the row
    assert "first success" in bk.load(written(tmp_path / "runs.jsonl", shuffled)).card()


@pytest.mark.parametrize(("marks", "stopped"), [
    ([[1], [0, 1], [0, 1], [0, 0, 1], [0, 0, 0], [0, 0, 1]], True),
    ([[1], [0, 1, 1], [0, 0, 1], [0, 0, 1]], False), ([[0, 1]] * 4 + [[0, 0]], False),
    ([[1], [0, 1, 0], [0, 0, 1], [0, 0, 1]], False), ([[1], [0, 1], [0, 0]], False),
])  # fmt: skip
def test_retries_end_at_the_first_success_or_at_one_number_of_trials(marks, stopped):
    assert ("first success" in bk.tally(marks).card()) == stopped
    kinds = {"fail": 0, "ok": 1, "pass": 1}  # of success
    words = [
        [("ok", "pass")[i % 2] if mark else "fail" for mark in row] for i, row in enumerate(marks)
    ]
    assert ("first success" in bk.tally(words, scores=kinds).card()) == stopped


def retries_beside_trials():
    """A system that tries again until it succeeds, and one with four trials of each question."""
    rows = [("again", f"q{n}", t, int(t == n % 4)) for n in range(40) for t in range(n % 4 + 1)]
    rows += [("fixed", f"q{n}", t, int(t > 1)) for n in range(40) for t in range(4)]
    return pd.DataFrame(rows, columns=["system", "task", "attempt", "passed"])


def test_retries_of_one_system_beside_repeated_trials_of_another():
    data = bk.tally(retries_beside_trials())
    assert data.stopped.tolist() == [True, False]
    assert "the trials of a question of 'again' end at its first success" in data.card()
    table = bk.table(bk.evaluate(data, "pass@1,3", rng=1)).query("target == 'questions'")
    estimates = table.set_index(["system", "metric"])["estimate"]
    assert estimates["again", "pass@1"] == pytest.approx(1 / 4)
    assert estimates["again", "pass@3"] == pytest.approx(3 / 4)
    assert estimates["fixed", "pass@1"] == pytest.approx(2 / 4)


def test_the_order_of_retries_is_no_evidence(tmp_path):
    """By construction the one success is last: neither drift nor trial effects are reported."""
    frame, path = retries_beside_trials(), tmp_path / "runs.csv"
    frame[frame["system"] == "again"].to_csv(path, index=False)
    report = bk.checks.inspect_source(path)
    assert (report.metrics, report.doubts) == (("pass@1,2,4",), ())
    assert "the order of the trials is not tested" in str(report)
    checks = bk.checks.check_trials(frame)
    assert checks.query("system == 'again'")["check"].tolist() == ["retries"]
    assert "end at its first success" in checks["sentence"].iloc[0]
    assert checks.query("system == 'fixed'")["flagged"].all()  # so are they where trials go on
    frame.to_csv(path, index=False)
    report = bk.checks.inspect_source(path)
    assert report.metrics == ("pass@1,2,4",)
    assert {str(doubt).partition(":")[0] for doubt in report.doubts} == {"fixed"}


# ------------------------------------------------------------------ several files, other sources


def test_ids_that_suites_of_one_system_share_are_refused_and_told_apart(tmp_path):
    for suite in ("alpha", "beta"):
        written(
            tmp_path / suite / "results.jsonl",
            [
                {"state": {"ok": q == 0}, "item": {"item_id": q, "prompt": f"{suite} {q}"}}
                for q in range(2)
            ],
        )
    columns = {"question": "item.item_id", "outcome": "state.ok"}
    one_system = {"m": [tmp_path / suite / "results.jsonl" for suite in ("alpha", "beta")]}
    both = ("alpha/results", "beta/results")
    message = refused(lambda: bk.load(one_system, columns=columns), *both)
    named = remedy(message[message.index("if each folder numbers") :], "columns")
    apart = "alpha / 0 1/1, alpha / 1 0/1, beta / 0 1/1, beta / 1 0/1"
    assert cells(bk.load(one_system, columns=named)) == apart
    message = refused(lambda: bk.load(tmp_path, columns=columns), "If each folder is a system")
    systems = columns | remedy(message, "columns")
    refused(lambda: bk.load(tmp_path, columns=systems), *both)
    suites = columns | remedy(message[message.index("if each is a suite") :], "columns")
    assert cells(bk.load({"m": tmp_path}, columns=suites)) == apart


def test_a_folder_of_runs_for_each_system_is_read_by_the_first_remedy(tmp_path):
    marks = {"a": ["010", "110"], "b": ["001", "101"]}  # of the tasks, in each run
    for system, number in product("ab", range(2)):
        rows = [{"task": n, "passed": int(mark)} for n, mark in enumerate(marks[system][number])]
        written(tmp_path / system / f"run_{number}.jsonl", rows)
    message = refused(lambda: bk.load(tmp_path), "If each folder is a system and each file a run")
    proposed = {name: remedy(message, name) for name in ("columns", "same_system")}
    data = bk.load(tmp_path, **proposed)
    assert data.systems == ["a", "b"]
    assert data.successes.values.tolist() == [[1, 2, 0], [1, 0, 2]]
    assert (data.trials.values == 2).all()


def test_lists_of_resolved_ids(tmp_path):
    """The experiments repository of SWE-bench: ids by what became of each."""
    path = written(
        tmp_path / "20240402_agent" / "results.json",
        '{"no_generation": ["o-3"], "generated": ["o-1", "o-2"], "no_logs": [],'
        ' "applied": ["o-1", "o-2"], "resolved": ["o-1"]}',
    )
    data, message = told(path, {})
    assert "1 of 3 trials have an empty output" in message
    assert data.systems == ["20240402_agent"]
    assert cells(data) == "o-1 1/1, o-2 0/1, o-3 0/1"
    gaps = bk.load(path, empty_output="missing", missing="ignore")
    assert only(gaps)["o-3"] == (0, 0, 1)


def test_what_systems_answered_makes_no_file_unreadable(tmp_path):
    rows = [{"id": 1, "answer": "4", "outcome": 1}, {"id": 1, "answer": "5", "outcome": 0}]
    path = written(tmp_path / "runs.jsonl", rows)
    data, message = told(path, {})
    assert cells(data) == "1 1/2"
    assert "CHECK: column 'answer' differs between the trials" in message
    assert "CHECK" not in bk.load(path, ignore=["answer"]).card()
    assert "answers" in bk.load(path, columns={"answer": "answer"}).card()


@pytest.mark.parametrize(("frame", "option"), [
    (pd.DataFrame({"task": ["a", None], "passed": [1, 0]}), "missing_question"),
    (pd.DataFrame({"task_id": ["t0"], "base_correct": [1], "tuned_correct": [1]}), "wide"),
    (pd.DataFrame({"task": ["a"] * 2, "seed": [0, 1], "success": [[0, 1]] * 2}), "ignore"),
])  # fmt: skip
def test_tally_proposes_no_option_of_load(frame, option, tmp_path):
    path = tmp_path / "runs.parquet"
    frame.to_parquet(path)
    assert f"{option}=" in refused(lambda: bk.load(path))
    assert f"{option}=" not in refused(lambda: bk.tally(frame))


PACKINGS = {"": bytes, ".gz": gzip.compress, ".zst": compress}


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_compressed_tables_and_logs_are_as_if_they_were_not(tmp_path, ending):
    files = {
        "runs.csv": LOGS / "tables" / "long.csv",
        "lists.jsonl": LOGS / "tables" / "lists.jsonl",
        "out.json": LOGS / "records" / "others" / "promptfoo.json",
        "humaneval.jsonl": LOGS / "code" / "humaneval.jsonl_results.jsonl",
    }
    for name, file in files.items():
        path, plain = tmp_path / f"{name}{ending}", tmp_path / name
        plain.write_bytes(file.read_bytes())
        path.write_bytes(PACKINGS[ending](file.read_bytes()))
        assert counts(load_quietly(path)) == counts(load_quietly(plain))
        assert bk.checks.inspect_source(path).kinds == {
            kind: [path.name] for kind in bk.checks.inspect_source(plain).kinds
        }
    folder = tmp_path / "tables"
    folder.mkdir()
    for name in "ab":
        content = f"task,passed\nx,1\ny,{int(name == 'a')}\n".encode()
        (folder / f"{name}.csv{ending}").write_bytes(PACKINGS[ending](content))
    assert bk.load(folder).systems == ["a", "b"]


@pytest.mark.long
@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_compressed_file_that_is_cut_or_a_bomb(tmp_path, ending):
    path = tmp_path / f"runs.csv{ending}"
    whole = PACKINGS[ending](b"task,passed\n" + b"".join(b"%d,1\n" % n for n in range(40_000)))
    path.write_bytes(whole[: len(whole) // 2])
    refused(lambda: bk.load(path), r"runs.csv", "truncated or damaged")
    path.write_bytes(b"task,passed\na,1\n")  # unpacked by a browser, under the same name
    assert cells(bk.load(path)) == "a 1/1"
    path.write_bytes(PACKINGS[ending](b"task,passed\na,1\n" + b"\n" * (20 << 20)))
    refused(lambda: bk.load(path, budget=1 << 20), "unpacked, must have at most")
    path = tmp_path / f"log.eval{ending}"
    path.write_bytes(PACKINGS[ending](b"PK"))
    refused(lambda: bk.load(path), "file type must be one of", r"\.eval\.")


@pytest.mark.parametrize("ending", PACKINGS)
@pytest.mark.parametrize("read", ["load", "inspect_source", "convert"])
def test_a_dash_is_standard_input(read, ending, monkeypatch, tmp_path):
    packed = io.BytesIO(PACKINGS[ending](b"task,passed\na,1\na,0\nb,1\n"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(packed))
    data = {
        "load": bk.load,
        "inspect_source": lambda dash: bk.checks.inspect_source(dash).data,
        "convert": lambda dash: bk.load(bk.convert(dash, tmp_path / "runs.csv")),
    }[read]("-")
    assert cells(data) == "a 1/2, b 1/1"


# ------------------------------------------------------------------ the shell and the pages


def test_the_shell_proposes_options_for_systems_in_several_columns(tmp_path):
    path, table = tmp_path / "runs.csv", tmp_path / "long.csv"
    factors = f"profile,task,seed,harness,success  {TWO_BY_TWO}"
    wide = "task_id,base_correct,tuned_correct,base_time  t0,1,True,.25  t1,0,True,1.25"
    for content, systems in (
        (factors, ["careful / basic", "careful / tools", "hasty / basic", "hasty / tools"]),
        (wide, ["base_correct", "tuned_correct"]),
        (COUNTS, ["alpha", "beta"]),
    ):
        report = run("doctor", written(path, content)).stdout
        command = re.search("^ +bayesatk (doctor .*)", report, re.MULTILINE)
        printed = succeeded(*shlex.split(command[1]))
        assert f"{len(systems)} systems" in printed
    written(path, factors)
    succeeded(
        "convert",
        path,
        "-o",
        table,
        "--where",
        "profile=careful",
        "--column",
        "system=harness",
        "--ignore",
        "seed",
    )
    assert bk.load(table).systems == ["basic", "tools"]


def test_doctor_shows_what_may_be_marks_before_what_is_nothing(tmp_path):
    names = [f"field_{n}" for n in range(20)]
    header, row = [*names, "annotation_exact_score", "example_id"], [*"x" * 20, "1", "a"]
    path = written(tmp_path / "wide.csv", f"{','.join(header)}  {','.join(row)}")
    report = str(bk.checks.inspect_source(path))
    assert re.search("example_id +question", report)
    assert re.search(r"annotation_exact_score +marks\?", report)
    assert "and 7 more" in report


def test_doctor_says_how_many_rows_it_read(tmp_path):
    path = written(tmp_path / "long.csv", "task,passed" + "  a,1" * 30_000)
    assert "by the first 20000 rows" in str(bk.checks.inspect_source(path))


@pytest.mark.parametrize(("name", "nearest"), [("skorer", "Did you mean scorer?"), ("zzz", "")])
def test_an_unknown_argument_is_one_line_with_the_nearest_name(tmp_path, name, nearest):
    path = written(tmp_path / "runs.csv", "task,passed  a,1")
    for call in (
        lambda: bk.load(path, **{name: 1}),
        lambda: bk.convert(path, tmp_path / "o.csv", **{name: 1}),
    ):
        with pytest.raises(TypeError) as error:
            call()
        message = str(error.value)
        assert message.startswith(f"{name} is no argument of this function. {nearest}")
        assert ("Did you mean" in message) == bool(nearest)
        assert "\n" not in message


def test_the_options_of_tables_run_as_they_are_on_the_page(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "logs.md").read_text(encoding="utf8")
    (block,) = (
        block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "where=" in block
    )
    written(
        tmp_path / "runs.csv",
        "profile,harness,task,attempt,answer,passed  careful,plain,a,0,x,1"
        "  careful,tool,a,1,y,1  hasty,plain,a,2,x,0  hasty,tool,a,3,y,0",
    )
    written(tmp_path / "suites" / "easy" / "runs.csv", "item_id,passed  1,0  2,1")
    written(tmp_path / "suites" / "hard" / "runs.csv", "item_id,passed  1,0  2,0")
    monkeypatch.chdir(tmp_path)
    loaded = []

    def load(*args, **options):
        loaded.append(load_quietly(*args, **options))

    exec(block, {"bk": SimpleNamespace(load=load)})
    assert [cells(data) for data in loaded] == [
        "careful / plain: a 1/1; careful / tool: a 1/1; hasty / plain: a 0/1; hasty / tool: a 0/1",
        "a 2/2",
        "a 2/4",
        "easy / 1 0/1, easy / 2 1/1, hard / 1 0/1, hard / 2 0/1",
    ]
    assert "'answer'" not in loaded[2].card()


def test_earlier_trials_that_lack_some_questions_are_noted(tmp_path):
    rows = [f"q{q},{t},{(q + t) % 2}" for q in range(6) for t in range(3)]
    now, earlier = (
        written(tmp_path / f"{name}.csv", "  ".join(["task,attempt,passed", *some]))
        for name, some in (("now", rows), ("earlier", rows[:9]))
    )
    fit = bk.evaluate(bk.load(now), "pass@1", prior_trials=bk.load(earlier), rng=1)
    assert any("3 of 6 questions have none (first: 'q3')" in note for note in fit.notes)
    printed = succeeded("evaluate", now, "-m", "pass@1", "--seed", 1, "--prior-trials", earlier)
    assert "3 of 6 questions have none" in printed
    mean = bk.table(fit).query("target == 'questions'")["mean"].iloc[0]
    assert f"{mean:.3f}"[1:] in printed


def test_the_metrics_of_several_kinds_of_wrong_are_those_of_right_and_wrong(tmp_path):
    path = written(tmp_path / "runs.csv", "task,correct  t1,True  t2,timeout  t3,False")
    report = bk.checks.inspect_source(path, scores={0: 0, 1: 1, "timeout": 0})
    assert report.metrics == ("pass@1",)
    fit = bk.evaluate(report.data, "pass@1", rng=1, draws=10)
    assert fit["observed_data"]["successes"].values.tolist() == [[1, 0, 0]]


def test_a_trial_in_the_place_of_the_names_is_told(tmp_path):
    path = tmp_path / "headless.csv"
    path.write_text("alpha,q0,0,1\nalpha,q0,1,0\nbeta,q0,0,1\n")
    data, said = told(path, {})
    assert data is None
    assert "look like a trial. Write a row of names above it" in said
    told_roles = {"columns": {"outcome": "1", "question": "q0"}}
    assert "Write a row of names above it" in told(path, told_roles)[1]
    matrix = written(tmp_path / "matrix.csv", "1,0,1  0,0,1  1,0,1")  # a trial that comes again
    assert "look like a trial. Write a row of names above it" in told(matrix, {})[1]
    path.write_text("system,question,trial,outcome\n" + path.read_text())
    assert cells(told(path, {})[0]) == "alpha: q0 1/2; beta: q0 1/1"


@pytest.mark.parametrize(
    ("wrong", "right"), [("No", "Yes"), ("FAIL", "PASS"), ("failed", "passed")]
)
def test_a_first_file_with_right_marks_alone_tells_how_wrong_ones_are_written(
    tmp_path, wrong, right
):
    marks = {"a": (right, right), "b": (wrong, right)}
    for system, (first, second) in marks.items():
        (tmp_path / f"{system}.csv").write_text(f"question,passed\nq1,{first}\nq2,{second}\n")
    data = bk.load({system: tmp_path / f"{system}.csv" for system in marks})
    assert data.successes.values.tolist() == [[1, 1], [0, 1]]


@pytest.mark.parametrize("marks", [(0, 1), ([0, 1, 1], [1, 0, 0])])
def test_marks_by_question_in_an_object_of_each_system_are_read_as_proposed(tmp_path, marks):
    rows = [
        {"model": model, "results": {f"q{q}": marks[(q + n) % 2] for q in range(4)}}
        for n, model in enumerate("AB")
    ]
    path = written(tmp_path / "models.json", json.dumps(rows))
    records = remedy(told(path, {})[1], "records")
    expected = "; ".join(
        f"{model}: "
        + ", ".join(
            f"q{q} {np.sum(own)}/{np.size(own)}" for q in range(4) for own in [marks[(q + n) % 2]]
        )
        for n, model in enumerate("AB")
    )
    assert cells(bk.load(path, records=records)) == expected


@pytest.mark.parametrize(("wrong", "right"), ["NY", "ny"])
def test_two_letters_for_no_and_yes_are_marks(tmp_path, wrong, right):
    rows = f"task,run,correct  t0,0,{wrong}  t0,1,{right}  t1,0,{right}  t1,1,{right}"
    assert cells(bk.load(written(tmp_path / "yn.csv", rows))) == "t0 1/2, t1 2/2"
    failed = written(tmp_path / "failed.csv", rows.replace("correct", "failed"))
    said = told(failed, {})[1]
    columns, scores = remedy(said, "columns"), remedy(said, "scores")
    assert scores == {right: 0, wrong: 1}
    assert cells(bk.load(failed, columns=columns, scores=scores)) == "t0 1/2, t1 0/2"
    with pytest.raises(bk.OutcomeError, match="not one of"):
        bk.load(written(tmp_path / "abc.csv", f"task,correct  t0,{wrong}  t1,{right}  t2,A"))


@pytest.mark.parametrize("systems", [2, 3, 4])
def test_a_balanced_column_of_letters_is_proposed_with_the_others(tmp_path, systems):
    marks = ["NYNY", "YYYN", "NYYY", "YNNY"][:systems]
    names = [f"m{n}" if systems == 4 else "ABC"[n] for n in range(systems)]
    rows = ["question," + ",".join(names)]
    rows += [f"q{q}," + ",".join(own[q] for own in marks) for q in range(4)]
    path = written(tmp_path / "wide.csv", "  ".join(rows))
    said = told(path, {})[1]
    columns = remedy(said, "columns")
    assert columns["outcome"] == names
    data = bk.load(path, columns=columns, wide=True)
    assert data.successes.values.tolist() == [[int(m == "Y") for m in own] for own in marks]


@pytest.mark.parametrize(("known", "is_truth"), [(7, False), (4, False), (3, True)])
def test_blank_cells_make_a_column_of_marks_the_truth_only_if_most_are(tmp_path, known, is_truth):
    rows = [f"q{q},{q % 2},{(q // 2) % 2 if q < known else ''},{(q // 3) % 2}" for q in range(8)]
    path = written(tmp_path / "wide.csv", "  ".join(["question,gpt,claude,gemini", *rows]))
    said = told(path, {})[1]
    assert ("truth" in said) == is_truth
    assert "each column of marks is a system" in said
    columns = {"outcome": ["gpt", "claude", "gemini"]}
    assert str(columns) in said
    data = bk.load(path, columns=columns, wide=True, missing="ignore")
    assert list(data.systems) == columns["outcome"]


def test_a_share_of_tasks_passed_at_a_larger_k_is_no_outcome(tmp_path):
    shares = [0.75, 0.5, 0.25, 1.0, 0.0, 0.75]
    rows = "  ".join(f"t{n},{share},{int(share > 0)}" for n, share in enumerate(shares))
    path = written(tmp_path / "runs.csv", f"task,pass@1,pass@4  {rows}")
    said = told(path, {})[1]
    columns = remedy(said, "columns")
    assert "'outcome':" not in said
    assert columns["rate"] == "pass@1"
    assert cells(bk.load(path, columns={"rate": "pass@1", "trials": 4})) == ", ".join(
        f"t{n} {4 * share:.0f}/4" for n, share in enumerate(shares)
    )


def test_means_that_are_shares_of_their_number_of_trials_are_read_as_rates(tmp_path):
    rows = "t0,0.667,0.577,3  t1,0.5,0.577,4  t2,1.0,0.0,4"
    path = written(tmp_path / "runs.csv", f"task,mean,std,n  {rows}")
    columns = remedy(told(path, {})[1], "columns")
    assert columns == {"rate": "mean", "trials": "n"}
    assert cells(bk.load(path, columns=columns)) == "t0 2/3, t1 2/4, t2 4/4"
    no_shares = written(tmp_path / "scores.csv", f"task,mean,std,n  {rows.replace('0.667', '0.6')}")
    refused(lambda: bk.load(no_shares, columns=columns), "percentages of 3 trials")


def test_a_balanced_column_of_words_is_proposed_with_those_of_the_same_words(tmp_path):
    marks = {"a": "++--", "b": "+++-", "c": "+---"}
    rows = [",".join([f"q{q}", *(own[q] for own in marks.values())]) for q in range(4)]
    text = "  ".join(["question,a,b,c", *rows]).replace("+", "ok").replace("-", "nok")
    said = told(written(tmp_path / "wide.csv", text), {})[1]
    assert remedy(said, "columns")["outcome"] == ["a", "b", "c"]
    assert "successes of 0" not in said

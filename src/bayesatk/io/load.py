"""`load`: outcomes from files, whatever wrote them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from bayesatk._tools.messages import Argument
from bayesatk.data.answers import AnswerRules, check_rules
from bayesatk.data.long_form import LongForm, MissingPolicy
from bayesatk.data.number_scale import NumberScale
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.requests import MissingCost, Request
from bayesatk.data.tables import read_rows
from bayesatk.data.tally import Better, check_options, finish, tally
from bayesatk.data.validation import OutcomeError, Scores
from bayesatk.io.budget import BUDGET, keeps_budget
from bayesatk.io.readers import (
    InputFiles,
    check_tables,
    count_parts,
    find_files,
    in_file,
    in_parts,
    read_logs,
    read_tables,
    refuse_options,
)
from bayesatk.io.rows import (
    CORRECT_INCORRECT,
    LogOptions,
    QuestionKey,
    is_correct_incorrect,
    note_names,
    note_uneven,
    to_long,
)
from bayesatk.io.sources import is_source
from bayesatk.io.table_files import Layout, note_parts


@keeps_budget
def load(
    source: object,
    *,
    systems: Sequence[object] | None = None,
    questions: Sequence[object] | None = None,
    scores: Mapping[Any, float] | str | tuple[float, float] | None = None,
    success: str | None = None,
    better: Better = "higher",
    missing: MissingPolicy = "error",
    columns: Mapping[str, str] | None = None,
    records: str | None = None,
    wide: bool = False,
    answer_rules: AnswerRules | None = None,
    group: object = None,
    covariates: object = None,
    weight: object = None,
    cost: object = None,
    cost_unit: str | None = None,
    missing_cost: MissingCost = "error",
    truth: object = None,
    verifier: object = None,
    format: str | None = None,
    scorer: str | None = None,
    filter: str | None = None,
    task: str | None = None,
    answers: bool = False,
    question_key: QuestionKey = "id",
    same_system: Literal["error", "trials"] = "error",
    empty_output: Literal["marked", "missing"] = "marked",
    strict: bool = False,
    progress: bool = False,
    budget: int = BUDGET,
    stream: bool | None = None,
) -> Outcomes:
    r"""Read outcomes from files, or from anything `bayesatk.tally` accepts.

    Parameters
    ----------
    source : path, sequence of paths, mapping {system: path or paths}, or data
        A long table, one row per trial, with a header or keys: ``.csv``, ``.tsv``, ``.jsonl``,
        ``.ndjson``, ``.json`` (an array of records), ``.parquet``; or one row per question with
        ``n`` trials of which ``c`` succeeded, or with a share or percentage of successes:
        ``columns={"rate": "pass@1", "trials": 10}``. Text may be compressed: ``.csv.gz``,
        ``.jsonl.zst``. Names of columns count as the same however they are written ("Sample ID",
        "sample_id", "sampleId"). Labels are kept as they are written ("007" stays
        text). Or logs: Inspect's ``.eval`` and ``.json``; ``samples_*.jsonl`` of
        lm-evaluation-harness; results of verifiers, Harbor, Terminal-Bench, SWE-bench, tau-bench,
        tau2-bench, Every Eval Ever, promptfoo, lighteval, HELM, OpenAI evals, DeepEval,
        LiveCodeBench, MathArena, EvalPlus and HumanEval (docs/logs.md). A folder stands for the
        logs in it; for its tables, if it holds no logs, which must have columns of the same names.
        Other objects go to `bayesatk.tally`.
    systems, questions, scores, success, better, missing, columns, answer_rules, group, covariates,
    weight, cost_unit
        As in `bayesatk.tally`. In CSV a blank cell or NaN is a missing outcome; a cell is
        an outcome if its text is one of `scores`, or is exactly one of its numbers, or true/false.
        In logs, C and I are right and wrong; other marks need `scores`. Groups and covariates of
        the questions in logs can be: ``"task"``, which is the group if there are several tasks;
        the fields of Inspect's metadata and of lm-eval's documents; the fields of the records of
        other logs, by dotted paths; the ``"repo"`` of SWE-bench and the ``"domain"`` of tau2-bench.
        Trials that stand side by side are ``{"outcome": "run0,run1"}``.
        A dotted name such as ``reward_info.reward`` is a field within a field, ``infos[].r`` the
        field r of every object in a list. A cell may have a list: the outcomes of all trials of its
        question.
    cost : str, optional
        Column, or field of records, with the cost of a trial. Inspect's logs have ``"cost"``
        (dollars), ``"tokens"``, ``"input_tokens"``, ``"output_tokens"`` and ``"seconds"``;
        tau2-bench has ``"cost"`` (of the agent) and ``"seconds"``; Every Eval Ever has
        ``"tokens"`` and ``"seconds"``.
    missing_cost : {"error", "ignore"}
        As in `bayesatk.tally`.
    truth : str, optional
        Column, or field of records, with what is true of a trial that a judge marked, as in
        `bayesatk.tally`.
    verifier : str, optional
        Column, or field of records, with the score that a verifier gave to a trial.
    records : str, optional
        Path of the records in a JSON document, if it is not one of the usual names: ``"runs"``, or
        ``"output.runs"``.
    wide : bool
        Whether tables have a column for each system, beside one of questions (the first column,
        unless it is named in `columns` or has a usual name), or columns ``trial_1``, ``trial_2``,
        ... of one system. Columns without marks are left out. Where systems are objects,
        ``columns={"outcome": "is_correct"}`` is a field of theirs.
    format : str, optional
        Format of the files, if it cannot be recognised from their names and first records: "csv",
        "tsv", "jsonl", "json", "parquet", "inspect", "lm-eval", "evalplus", "harbor", ...; the
        error for an unknown format lists all.
    scorer : str, optional
        For logs with several marks for a trial, the one to read: Inspect's scorer (or
        ``"SCORER/KEY"``), the metric of lm-eval, HELM or lighteval, a reward of verifiers or
        Harbor, EvalPlus's "base" or "plus".
    filter : str, optional
        lm-eval's filter, or HELM's split, where there are several.
    task : str, optional
        The task to read, where logs are of several; the others are left out.
    answers : bool
        Whether to keep the answers in Inspect and lm-eval logs, for votes between them.
    question_key : {"id", "content", "unchecked"}
        What identifies a question in logs. ``"id"``: its id; an id with several contents (input
        and target) is an error. ``"content"``: id and content together. ``"unchecked"``: the id,
        without this check.
    same_system : {"error", "trials"}
        What to do with a second log of the same system and question: raise, or count its trials as
        further trials. In tables: whether trials of one number in several files, or of several
        systems in a file that is named as one, are further trials.
    empty_output : {"marked", "missing"}
        What to do with a trial that is marked wrong although the system returned nothing, or its
        sandbox, network or verifier failed: keep the mark, with an `OutcomeWarning`; or count it as
        a missing outcome.
    strict : bool
        Whether to raise if a folder has files that are neither logs nor (where there are no logs)
        tables, or has Git LFS pointers. Otherwise they are skipped, and the data card lists them.
    progress : bool
        Whether to show the progress of reading large files, on standard error.
    budget : int
        Limit of the memory for a file, in bytes; 2 GiB by default. One JSON value, line, row, or
        member of an archive may take an eighth of it; all members together may take the budget, or
        100 times the bytes of the archive if that is more.
    stream : bool, optional
        Whether to count CSV and Parquet files in blocks of rows, so that memory grows with the
        number of questions and not of rows. Default: from 256 MB (for Parquet, 8 million rows) on,
        if no answers are read.

    Returns
    -------
    Outcomes
        Print it to see what was read, what is missing and why, and what was assumed.

    Raises
    ------
    OutcomeError
        If a file cannot be read; the message names file, place, rule and remedy.
    FileNotFoundError
        If there is no such file.

    See Also
    --------
    bayesatk.tally : arrays and tables in memory.
    bayesatk.convert : turns logs into one long table.

    Notes
    -----
    Logs are read in place, one sample at a time: memory grows with the number of trials (about a
    kilobyte for each), not with the size of their transcripts. Nothing in a file is executed or
    unpickled; pipes and devices are refused, and what a file unpacks to is limited by `budget`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "runs.csv"
    >>> _ = path.write_text("task,trial,passed\na,1,1\na,2,0\nb,1,1\nb,2,1\n")
    >>> load(path).successes.values.tolist()
    [[1, 2]]
    """
    labels: dict[str, Any] = {"systems": systems, "questions": questions}
    request = Request.of(group, covariates, weight, cost, cost_unit, missing_cost, truth, verifier)
    options = LogOptions(
        scorer=scorer, filter=filter, task=task, answers=answers, question_key=question_key,
        same_system=same_system, empty_output=empty_output,
    )  # fmt: skip
    layout = Layout(columns or {}, records, wide, request.roles, same_system)
    if not is_source(source):
        refuse_options(options, ["data that are no files"])
        replace(layout, columns={}).refuse_for("data that are no files")
        return tally(
            source, scores=scores, success=success, better=better, columns=columns,
            answer_rules=answer_rules, missing=missing, group=group, covariates=covariates,
            weight=weight, cost=cost, cost_unit=cost_unit, missing_cost=missing_cost, truth=truth,
            verifier=verifier, **labels,
        )  # fmt: skip
    request.refuse_given_by_trial()
    scale = check_options(scores, missing, better)
    rules = check_rules(answer_rules)
    inputs = find_files(source, format, progress, strict)
    with in_file(inputs):
        if inputs.are_logs:
            if answer_rules is not None and not answers:
                raise OutcomeError(
                    "answer_rules must be left out unless ", Argument("answers", True), " is given."
                )
            rows = read_logs(inputs, options, layout)
            long, scale = to_long(rows, None if scores is None else scale, missing, rules)
        else:
            long, scale = _from_tables(inputs, options, layout, scores, scale, rules, stream)
            long = replace(long, notes=(*long.notes, *inputs.notes))
        long = request.add_to(long.labelled(**labels))
        if inputs.are_logs:
            request, long = request.of_logs(), note_uneven(long, scale)
        else:
            long = note_parts(long, scale, inputs.sources)
        long = note_names(long, [str(source.path) for source in inputs.sources])
        done = finish(long, scale, missing, request, success, better)
    return replace(done, sources=tuple((file.name, file.sha256) for file in inputs.sources))


def _from_tables(
    inputs: InputFiles,
    options: LogOptions,
    layout: Layout,
    scores: object,
    scale: Scores,
    rules: AnswerRules,
    stream: bool | None,
) -> tuple[LongForm, Scores]:
    """Return the trials of tables, or their counts if they are counted in parts, and the scores."""
    check_tables(inputs, options)
    whole = isinstance(scale, NumberScale) and not stream  # numbers become levels together
    if in_parts(inputs, layout, stream) and not whole:
        return count_parts(inputs, layout, None if scores is None else scale, scale)
    read = read_tables(inputs, layout, scale)
    if scores is None and is_correct_incorrect(read):
        scale = CORRECT_INCORRECT
    return read_rows(read, scale, rules), scale

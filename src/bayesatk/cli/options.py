"""What commands share: their options, reading of data, delivery of results, errors in one line."""

import inspect
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import wraps
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from typer import Context, Exit, Option, Typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from bayesatk.cli.remedies import as_options, keep_typed, with_commands
from bayesatk.cli.terminal import print_result, say, terminal
from bayesatk.io.load_options import FileOptions

BAD_INPUT, DISAGREE, CLOSED_PIPE = 2, 1, 141  # exit codes; the last as shells give SIGPIPE
RESULTS = (".nc", ".zarr", ".json", ".csv")  # endings of files
DEFAULT_T = 10.0

Text = str | None
Texts = list[str] | None


class WithoutTypes:
    """Help that names no type of a flag, and the types of other options as people write them."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options, with their types as they are shown."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            kind = param.display_type(ctx)
            written = "" if isinstance(param, TyperArgument) else _TYPES.get(kind, kind)
            param.display_type_rich = lambda ctx, written=written: written
        return params


_TYPES = {
    "<bool>": "", "<int>": "INTEGER", "<float>": "NUMBER", "<path>": "FILE", "<str>": "TEXT",
    "<list[str]>": "TEXT",
}  # fmt: skip


class GroupOfCommands(WithoutTypes, TyperGroup):
    """The command without a subcommand."""


class CommandWithGroups(WithoutTypes, TyperCommand):
    """A command whose `--help` shows the common options, and `--help-all` all by groups."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of a command, which the commands that messages propose repeat."""
        keep_typed(ctx.info_name, self.params, args)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, without the options of groups unless all are asked for."""
        for param in self.get_params(ctx):
            grouped = getattr(param, "rich_help_panel", None) is not None
            param.hidden = grouped and not ctx.meta.get(_ALL, False)
        super().format_help(ctx, formatter)


_ALL = "help_all"


def _help_all() -> inspect.Parameter:
    """Return the option that shows all options."""

    def show(ctx: Context, requested: bool) -> None:
        if requested:
            ctx.meta[_ALL] = True
            print(ctx.get_help())
            raise Exit

    option = Option(
        "--help-all", is_eager=True, expose_value=False, callback=show, help="Show all options."
    )
    return inspect.Parameter(
        "help_all",
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[bool, option],
        default=False,
    )


def command(
    app: Typer,
    epilog: str,
    *,
    name: str | None = None,
    optional_files: bool = False,
    without: Collection[str] = (),
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function whose parameters are options, or groups of options.

    A group is a dataclass, every field of which is an option. An option of the same name that the
    function has itself takes the place of that of a group. Options in `without` are not offered.
    Docstrings have the help of options, with other names of theirs. Options of the section
    "Parameters" are in `--help`; those of other sections are panels of `--help-all`.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        parameters = inspect.signature(function).parameters
        groups: dict[str, Any] = {
            name: parameter.annotation
            for name, parameter in parameters.items()
            if is_dataclass(parameter.annotation)
        }
        plain = {name: option for name, option in parameters.items() if name not in groups}
        offered = _of_groups(groups.values(), without) | plain
        if optional_files:
            offered["files"] = offered["files"].replace(annotation=Texts, default=None)
        markers = _COMMON | _described(function)
        offered = {
            name: option.replace(
                kind=option.KEYWORD_ONLY, annotation=Annotated[option.annotation, markers[name]]
            )
            for name, option in sorted(offered.items(), key=lambda item: [*markers].index(item[0]))
        }

        @wraps(function)
        def wrapped(**values: Any) -> None:
            arguments = {name: values[name] for name in plain}
            for name, group in groups.items():
                names = {field.name for field in fields(group)} & {*values}
                arguments[name] = group(**{option: values[option] for option in names})
            with one_line_errors(offered):
                function(**arguments)

        if any(markers[name].rich_help_panel for name in offered):
            offered["help_all"] = _help_all()
        options = sorted(offered.values(), key=lambda option: option.default is not option.empty)
        wrapped.__doc__ = inspect.cleandoc(function.__doc__ or "").partition("\n")[0]
        wrapped.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
        wrapped.__annotations__ = {name: option.annotation for name, option in offered.items()}
        return app.command(name, cls=CommandWithGroups, epilog=epilog)(wrapped)

    return decorate


def _of_groups(groups: Iterable[Any], without: Collection[str]) -> dict[str, inspect.Parameter]:
    """Return the fields of dataclasses as parameters."""
    return {
        field.name: inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=field.type,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
        )
        for group in groups
        for field in fields(group)
        if field.name not in without
    }


def _described(owner: Any) -> dict[str, Any]:
    """Return what typer is told of the options that a docstring describes."""
    panel: str | None = None
    options: dict[str, Any] = {}
    lines = inspect.cleandoc(owner.__doc__).splitlines()
    for number, line in enumerate(lines):
        if not line or line.startswith((" ", "-")):
            continue
        below = [*lines[number + 1 : number + 2], ""]
        if set(below[0]) == {"-"}:
            panel = None if line == "Parameters" else line
        elif below[0].startswith(" "):
            name, _, flags = line.partition(" : ")
            texts = takewhile(lambda text: text.startswith(" "), lines[number + 1 :])
            help_text = " ".join(map(str.strip, texts))
            names = [] if "--" in flags else [f"--{name.replace('_', '-')}"]
            names += filter(None, flags.split(", "))
            options[name] = Option(*names, help=help_text, rich_help_panel=panel)
            if name in ("files", "result"):
                options[name] = typer.Argument(help=help_text, show_default=False)
    return options


@contextmanager
def one_line_errors(offered: Collection[str]) -> Iterator[None]:
    """Turn the library's own refusals into one line on standard error and exit code 2."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise Exit(CLOSED_PIPE) from None
    except (ValueError, TypeError, OSError, ImportError) as error:
        print(f"bayesatk: {with_commands(error, offered)}", file=sys.stderr)
        raise Exit(BAD_INPUT) from None


# Options of what is done before and after `bayesatk.load`, or told to it in another form.
_NOT_OF_LOAD = ("files", "quiet", "shared", "score", "column", "covariate", "system", "memory")
# Options of the data, by which earlier trials are read too.
_OF_EARLIER = (
    "scores", "success", "columns", "where", "ignore", "budget", *vars(FileOptions()),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Reading(FileOptions):
    """Options by which data are read: those of `bayesatk.load`. The common ones come first.

    Parameters
    ----------
    files
        Tables (.csv, .jsonl, .json, .parquet) or logs (Inspect, lm-eval, Harbor, HELM, ...):
        files, folders, NAME=FILE to name a system, - for standard input.
    system
        Only this system; repeat it for several. Default: all systems.
    missing
        Treatment of missing outcomes.
    score
        Score of an outcome: --score C=1 --score I=0, --score error=missing for one that stands
        for no outcome; or numbers as they are: --score numbers,
        or --score 0:1 for numbers between two ends.
    column
        Column of a role: --column answer=text; several together: system=profile,harness;
        trials side by side: outcome=run0,run1.
    group
        Column with the group of every question, such as its domain.
    where
        Rows to read: --where profile=careful, or one of several values: profile=careful,plain;
        all rows but those of a value: 'task=!TOTAL'.
    ignore
        Column that is passed over; repeat it for several.
    records
        Path of the records in a JSON document, or within each line: output.runs.
    same_system
        Treatment of a second file or log of a system.
    wide
        Tables have a column for each system.
    success
        Rule for success: --success 'score >= 0.5'.
    better
        Which scores are better; lower: seconds, errors, costs.
    truth
        Column with what is true of a trial, where it is known (0, 1 or empty), to correct for
        errors of the judge.
    cost
        Column with the cost of a trial; for logs: cost, tokens.
    quiet : -q
        No progress, no data card.

    Questions and trials
    --------------------
    covariate
        Column with a property of every question, on which success depends.
    weight
        Column with the weight of every question.
    cost_unit
        Unit of costs: USD, tokens, s.
    missing_cost
        Treatment of trials without a cost.
    shared
        Only questions that every system tried.

    Tables and files
    ----------------
    missing_question
        Treatment of rows without a question.
    format
        Format of the files, if names do not show it.
    strict
        Fail if a folder has files that are not logs.
    memory
        Limit of memory for a file: 4GiB, or bytes; default: 2GiB.

    Logs
    ----
    scorer
        Mark of a log to read: scorer, metric, or base|plus.
    filter
        Filter of lm-eval to read.
    task
        Task of logs to read, if several.
    answers
        Keep the answers in logs, for votes.
    question_key
        What identifies a question in logs.
    empty_output
        Treatment of wrong trials without output, or with a failed call.
    """

    files: list[str]
    system: Texts = None
    missing: Literal["error", "ignore", "wrong", "right"] = "error"
    score: Texts = None
    column: Texts = None
    where: Texts = None
    ignore: Texts = None
    group: Text = None
    quiet: bool = False
    success: Text = None
    better: Literal["higher", "lower"] = "higher"
    covariate: Texts = None
    weight: Text = None
    cost: Text = None
    cost_unit: Text = None
    missing_cost: Literal["error", "ignore"] = "error"
    truth: Text = None
    shared: bool = False
    memory: Text = None

    def options(self) -> dict[str, Any]:
        """Return the options of `bayesatk.load` that differ from its own."""
        changed = {
            field.name: value
            for field in fields(self)
            if (value := vars(self)[field.name]) != field.default and field.name not in _NOT_OF_LOAD
        }
        texts = {
            "scores": _scores(self.score),
            "columns": pairs(self.column, "--column"),
            "where": {
                name: value.split(",") if "," in value else value
                for name, value in pairs(self.where, "--where").items()
            },
            "covariates": list(self.covariate or ()),
            "budget": _bytes(self.memory),
        }
        silent = {"progress": False} if self.quiet else {}
        return changed | {name: value for name, value in texts.items() if value} | silent

    def load(
        self,
        output: Path | None = None,
        *,
        read: Callable[..., Any] | None = None,
        endings: Collection[str] = RESULTS,
    ) -> Any:
        """Load the data, or what `read` makes of them; warnings become lines on standard error.

        An output that could not be written, or is an input, is refused before.
        """
        check_output(output, self.files, endings)
        options, source = self.options(), _source(self.files)
        from bayesatk.io.load import load  # takes a second to import, errors before it do not

        with _warnings_as_lines() as caught:
            data = (read or load)(source, **options)
        if read is not None:  # a reader of another kind selects by itself
            return data
        data = _noted_as_options(data, [warning.message for warning in caught])
        if self.system:
            data = outcomes_of_systems(data, self.system)
        return data.shared() if self.shared else data


@contextmanager
def _warnings_as_lines() -> Iterator[list[warnings.WarningMessage]]:
    """Print the warnings of a reader as lines on standard error, with options of the shell."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield caught
        finally:  # a doubt may say why the data are refused
            for warning in caught:
                text = as_options(warning.message, READING)
                print(f"bayesatk: warning: {text}", file=sys.stderr)


def _noted_as_options(data: Any, doubts: Iterable[Warning | str]) -> Any:
    """Return the data with what they are doubted for in options of the shell."""
    written = {f"CHECK: {doubt}": f"CHECK: {as_options(doubt, READING)}" for doubt in doubts}
    return replace(data, notes=tuple(written.get(note, note) for note in data.notes))


def outcomes_of_systems(data: Any, names: Collection[str]) -> Any:
    """Return the outcomes of some systems, whose labels may be numbers."""
    labels = {str(label): label for label in data.systems}
    return data.sel(system=[labels.get(name, name) for name in names])


READING = [field.name for field in fields(Reading)]


def _bytes(text: str | None) -> int | None:
    """Return a number of bytes, which may be in units.

    Examples
    --------
    >>> _bytes("4GiB"), _bytes("500 MB"), _bytes("1024"), _bytes(None)
    (4294967296, 500000000, 1024, None)
    """
    if text is None:
        return None
    number = re.fullmatch(r"(\d+) *(?:([kKMGT])(i?)B?|B)?", text.strip())
    if number is None:
        raise ValueError(f"--memory must be bytes, or a size such as 4GiB; got {text!r}.")
    power: int = " KMGT".index((number[2] or " ").upper())
    return int(int(number[1]) * (1024 if number[3] else 1000) ** power)


def _scores(texts: list[str] | None) -> Any:
    """Return scores as `bayesatk.load` takes them.

    Examples
    --------
    >>> _scores(["C=1", "I=0", "N=missing"]), _scores(["numbers"]), _scores(["0:1"])
    ({'C': 1.0, 'I': 0.0, 'N': None}, 'numbers', (0.0, 1.0))
    """
    if texts and len(texts) == 1 and "=" not in texts[0]:
        low, colon, high = texts[0].partition(":")
        if not colon:
            return texts[0]
        try:
            return float(low), float(high)
        except ValueError:
            raise ValueError(
                f"--score must be 'numbers', LOW:HIGH, or OUTCOME=SCORE; got {texts[0]!r}."
            ) from None
    from bayesatk.data.validation import number_of, outcome_of  # takes half a second to import

    scores = pairs(texts, "--score")
    for name, value in scores.items():
        if value != "missing" and number_of(value) is None:
            raise ValueError(
                f"--score must give an outcome a number, or 'missing'; got {name}={value}. Write "
                f"what {name} is worth in place of {value}, such as --score {name}=0.5."
            )
    return {
        outcome_of(name): None if value == "missing" else float(value)
        for name, value in scores.items()
    }


@dataclass(frozen=True)
class Evaluation:
    """Options of what is asked of the data, and under which model.

    Parameters
    ----------
    metric : -m
        Such as 'pass@1,4', 'pass^4', 'maj@5', 'max@4', 'min@4'. Default: pass@k and pass^k
        for the k that the trials allow, or the mean score. With --cost also cost and
        cost/success, unless one of them is named.
    seed
        Seed of the draws; recorded in the result.

    The model
    ---------
    pooling
        Pooling of information between questions.
    difficulty
        Difficulty family under partial pooling: averaged, beta, inflated (some questions
        never or always solved), mixture (of two Betas); repeat it for several.
    group_weight
        Weights of groups in means, with --group: equal, or GROUP=WEIGHT for each; default:
        their numbers of questions.
    population
        Questions like these: new ones from the law of difficulty, or these drawn anew with
        their weights; default: the law, except with --pooling none.
    ci_prob
        Probability of the interval.
    ci_kind
        Kind of interval.
    judge
        Table (.csv) of other trials of known truth, to correct for errors of the judge:
        columns mark and truth, and system for a set of each system.
    prior_trials
        Earlier trials of the same questions by the same systems: a table or log like the data.
    prior_weight
        Weight of an earlier trial, from 0 to 1.
    """

    metric: Texts = None
    seed: int | None = None
    pooling: Literal["partial", "none", "complete"] = "partial"
    difficulty: Texts = None
    group_weight: Texts = None
    population: Literal["law", "bootstrap"] | None = None
    ci_prob: float = 0.95
    ci_kind: Literal["eti", "hdi"] = "eti"
    judge: Path | None = None
    prior_trials: Path | None = None
    prior_weight: float = 1.0

    def on(self, data: Any) -> "Evaluation":
        """Return what is asked of these data: without metrics, the usual ones; their costs."""
        from bayesatk.io.inspect_source import usual_metrics
        from bayesatk.metrics.grid import without_costs

        metrics = [*(self.metric or usual_metrics(data))]
        if "cost_sums" in data.dataset and not without_costs(metrics)[1]:
            right_wrong = data.binary and self.judge is None and "truth_count" not in data.dataset
            metrics += ["cost", "cost/success"][: 1 + right_wrong]
        return replace(self, metric=metrics)

    def model(self, data: Any, reading: Reading | None = None) -> dict[str, Any]:
        """Return the options that `bayesatk.evaluate` and `bayesatk.sample` share."""
        covariates = None if reading is None else reading.covariate
        return {
            "pooling": self.pooling,
            "difficulty": families(self.difficulty),
            "judge": self.judge,
            "rng": self.seed,
            "population": self.population,
            "prior_trials": self._earlier(reading),
            "prior_weight": self.prior_weight,
            **structure(data, covariates, self.group_weight),
        }

    def _earlier(self, reading: Reading | None) -> Any:
        """Return the earlier trials of the questions of the data, some of which may have none."""
        if self.prior_trials is None or reading is None:
            return None
        from bayesatk.io.load import load

        check_file(str(self.prior_trials))
        options = reading.options()
        shared = {name: options[name] for name in _OF_EARLIER if name in options}
        with _warnings_as_lines():
            earlier = load(str(self.prior_trials), **shared | {"missing": "ignore"})
        chosen = reading.system if len(earlier.systems) > 1 else None
        return outcomes_of_systems(earlier, chosen) if chosen else earlier

    def evaluate(self, data: Any, model: Mapping[str, Any], progress: bool | None) -> Any:
        """Compute the exact posterior."""
        from bayesatk.posterior.evaluate import evaluate

        return evaluate(
            data,
            self.metric or (),
            ci_prob=self.ci_prob,
            ci_kind=self.ci_kind,
            progress=progress,
            **model,
        )


@dataclass(frozen=True)
class Delivery:
    """Options of what becomes of a result.

    Parameters
    ----------
    as_json : --json
        Print JSON instead of tables.
    output : -o
        Save as .nc, .zarr (whole), .json (all tables), .csv (one).
    quiet : -q
        No progress, no data card.
    """

    as_json: bool = False
    output: Path | None = None
    quiet: bool = False

    @property
    def silent(self) -> bool:
        """Whether nothing is said but the result."""
        return self.quiet or self.as_json

    @property
    def progress(self) -> bool | None:
        """Whether to show the progress of long work; None: where somebody watches."""
        return False if self.silent else None

    def deliver(self, result: Any, data: Any = None) -> None:
        """Save a result and print it: as JSON, or its newest table below the card of its data."""
        from bayesatk.io.exports import as_json

        if self.as_json:
            print_json(as_json(result))
        else:
            console = terminal()
            if data is not None and not self.quiet:
                say(console, data.card())
            print_result(console, result)
        self.save(result)
        if self.output is not None and not self.as_json:
            say(terminal(), f"Saved {self.output}")

    def save(self, result: Any) -> None:
        """Save a result in the format of the ending; in CSV its newest table."""
        from bayesatk.io.exports import write_tables
        from bayesatk.io.saved import save

        if self.output is None:
            return
        if self.output.suffix in (".json", ".csv"):
            write_tables(result, self.output)
        else:
            save(result, self.output)


_COMMON = {
    name: option
    for group in (Reading, Evaluation, Delivery)
    for name, option in _described(group).items()
}


def check_file(name: str | Path) -> None:
    """Refuse a file that is not there; - stands for standard input."""
    if str(name) != "-" and not os.path.exists(name):
        raise FileNotFoundError(f"{name}: there is no such file.")


def pairs(items: list[str] | None, option: str) -> dict[str, str]:
    """Return NAME=VALUE arguments as a mapping."""
    values_by_name: dict[str, str] = {}
    for item in items or []:
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise ValueError(f"{option} must be NAME=VALUE; got {item!r}.")
        if name in values_by_name:
            raise ValueError(f"{option} must name everything once; got {name!r} twice.")
        values_by_name[name] = value
    return values_by_name


def numbers_between_commas(text: str) -> list[int]:
    """Return numbers that are separated by commas.

    Examples
    --------
    >>> numbers_between_commas("1,4")
    [1, 4]
    """
    return list(map(int, text.split(",")))


def print_json(value: dict[str, Any]) -> None:
    """Print JSON on standard output."""
    print(json.dumps(value, indent=2, allow_nan=False))


def working(status: str, quiet: bool) -> Any:
    """Show a status on the terminal while something is computed."""
    if quiet or not sys.stderr.isatty():
        return nullcontext()
    return Console(stderr=True).status(status)


def announce(status: str, quiet: bool) -> None:
    """Write to standard error what takes time, where it is no terminal, which shows it anyway."""
    if not (quiet or sys.stderr.isatty()):
        print(status, file=sys.stderr, flush=True)


def structure(data: Any, covariates: list[str] | None, weights: list[str] | None) -> dict[str, Any]:
    """Return the covariates and the weights of groups, as options of `bayesatk.evaluate`."""
    if weights and "group" not in data.dataset.coords:
        raise ValueError("--group-weight must be left out without --group.")
    if weights is None or weights in (["equal"], ["questions"]):
        return {"covariates": covariates, "group_weights": weights and weights[0]}
    shares = {name: float(value) for name, value in pairs(weights, "--group-weight").items()}
    return {"covariates": covariates, "group_weights": shares}


def families(difficulty: list[str] | None) -> str | list[str] | None:
    """Return the families that `bayesatk.evaluate` is asked for.

    Examples
    --------
    >>> families(None), families(["averaged"]), families(["beta", "mixture"])
    (None, 'averaged', ['beta', 'mixture'])
    """
    return difficulty[0] if difficulty and len(difficulty) == 1 else difficulty or None


def check_output(
    output: Path | None, files: list[str] | None, endings: Collection[str] = RESULTS
) -> None:
    """Refuse an output that could not be written, or is an input, before anything is computed."""
    if output is None:
        return
    if output.suffix not in endings:
        raise ValueError(f"--output must end in {', '.join(endings)}; got {output.name!r}.")
    if not output.resolve().parent.is_dir():
        raise ValueError(f"--output must be in a folder that exists; got {str(output)!r}.")
    inputs = [Path(name.partition("=")[2] or name) for name in files or ()] + list(
        map(Path, files or ())
    )
    if output.resolve() in {path.resolve() for path in inputs}:
        raise ValueError(f"--output must not be an input; got {str(output)!r}. Name another file.")


def _source(files: list[str]) -> Any:
    """Return paths, or paths by system where names are given."""
    if not all(files):
        raise ValueError("files must be named; got an empty name. Is a variable unset?")
    named = [name.partition("=") for name in files]
    is_named = [bool(equals) and not Path(f"{a}{equals}{b}").exists() for a, equals, b in named]
    if not any(is_named):
        for path in files:
            check_file(path)
        return files[0] if len(files) == 1 else files
    if not all(is_named):
        raise ValueError(
            f"files must be all NAME=FILE, or all without a name; got {' '.join(files)}."
        )
    paths_by_system: dict[str, list[str]] = {}
    for name, _, path in named:
        check_file(path)
        paths_by_system.setdefault(name, []).append(path)
    return paths_by_system

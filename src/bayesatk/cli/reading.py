"""Reading data: the options of every command that does, standard input, and what is refused."""

import inspect
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bayesatk.cli.messages import as_options, options_of
from bayesatk.cli.options import Quiet, check_file, one_line_errors, pairs


def read_options(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Tables (.csv, .jsonl, .json, .parquet) or logs (Inspect, lm-eval, Harbor, "
            "HELM, ...): files, folders, NAME=FILE to name a system, - for standard input.",
            show_default=False,
        ),
    ],
    missing: Annotated[
        Literal["error", "ignore", "wrong", "bounds"],
        typer.Option(help="Treatment of missing outcomes; bounds: all wrong, and all right."),
    ] = "error",
    score: Annotated[
        list[str] | None,
        typer.Option("--score", help="Score of an outcome: --score C=1 --score I=0."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", help="Column of a role: --column answer=text."),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group", help="Column with the group of every question, such as its domain."
        ),
    ] = None,
    covariate: Annotated[
        list[str] | None,
        typer.Option(
            "--covariate",
            help="Column with a property of every question; or the covariates of success, as a "
            "formula of such columns: '~ log2(minutes)'.",
        ),
    ] = None,
    weight: Annotated[
        str | None, typer.Option("--weight", help="Column with the weight of every question.")
    ] = None,
    cost: Annotated[
        str | None,
        typer.Option("--cost", help="Column with the cost of a trial; for logs: cost, tokens."),
    ] = None,
    cost_unit: Annotated[
        str | None, typer.Option("--cost-unit", help="Unit of costs: USD, tokens, s.")
    ] = None,
    missing_cost: Annotated[
        Literal["error", "ignore"], typer.Option(help="Treatment of trials without a cost.")
    ] = "error",
    records: Annotated[
        str | None, typer.Option(help="Path of the records in a JSON document: output.runs.")
    ] = None,
    wide: Annotated[
        bool, typer.Option("--wide", help="Tables have a column for each system.")
    ] = False,
    format: Annotated[
        str | None, typer.Option("--format", help="Format of the files, if names do not show it.")
    ] = None,
    scorer: Annotated[
        str | None, typer.Option(help="Mark of a log to read: scorer, metric, or base|plus.")
    ] = None,
    filter: Annotated[
        str | None, typer.Option("--filter", help="Filter of lm-eval to read.")
    ] = None,
    answers: Annotated[
        bool, typer.Option("--answers", help="Keep the answers in logs, for votes.")
    ] = False,
    question_key: Annotated[
        Literal["id", "content", "unchecked"],
        typer.Option(help="What identifies a question in logs."),
    ] = "id",
    same_system: Annotated[
        Literal["error", "trials"], typer.Option(help="Treatment of a second log of a system.")
    ] = "error",
    empty_output: Annotated[
        Literal["marked", "missing"],
        typer.Option(help="Treatment of wrong trials without output, or with a failed call."),
    ] = "marked",
    task: Annotated[str | None, typer.Option(help="Task of logs to read, if several.")] = None,
    shared: Annotated[
        bool, typer.Option("--shared", help="Only questions that every system tried.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if a folder has files that are not logs.")
    ] = False,
    budget: Annotated[
        int | None,
        typer.Option(help="Limit of memory for a file, in bytes; default: 2 GiB."),
    ] = None,
    quiet: Quiet = False,
) -> tuple[Any, dict[str, Any]]:
    """Return what to read and the options of `bayesatk.load`."""
    scores = pairs(score, "--score")
    for formula in _formulas(covariate):
        from bayesatk.data.design import covariates_of

        plain_columns = [name for name in covariate or () if name != formula]
        covariate = list(dict.fromkeys([*plain_columns, *sorted(covariates_of(formula))]))
    options = {
        "missing": missing, "format": format, "scorer": scorer, "filter": filter,
        "answers": answers, "question_key": question_key, "same_system": same_system,
        "empty_output": empty_output, "task": task, "shared": shared, "strict": strict,
        "records": records, "wide": wide,
        "columns": pairs(column, "--column"), "group": group, "weight": weight,
        "covariates": covariate, "cost": cost, "cost_unit": cost_unit,
        "scores": {label(name): float(value) for name, value in scores.items()} or None,
        "progress": not quiet and sys.stderr.isatty(),
    }  # fmt: skip
    options |= {} if budget is None else {"budget": budget}
    options |= {} if missing_cost == "error" else {"missing_cost": missing_cost}
    return _source(files), options


def _formulas(covariate: list[str] | None) -> list[str]:
    """Return what is a formula among the covariates: one at most."""
    formulas = [text for text in covariate or () if text.lstrip().startswith("~")]
    if len(formulas) > 1:
        raise ValueError(f"--covariate must be one formula at most; got {' and '.join(formulas)}.")
    return formulas


def reads_data(
    optional: bool = False,
    check: Callable[..., None] | None = None,
    read: Callable[..., Any] | None = None,
    without: tuple[str, ...] = (),
    endings: tuple[str, ...] = (".nc", ".zarr", ".json", ".csv", ".tex"),
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options by which data are read; it gets `data` (and `quiet`).

    `check` takes files and the command's options, and refuses what does not go together before
    anything heavy is imported. `read` takes source and options; default `bayesatk.load`. Options in
    `without` are not offered.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        command_parameters = inspect.signature(command).parameters
        read_parameters = inspect.signature(read_options).parameters
        shared = {
            name: parameter for name, parameter in read_parameters.items() if name not in without
        }
        if optional:
            shared["files"] = shared["files"].replace(
                annotation=Annotated[list[str] | None, *shared["files"].annotation.__metadata__],
                default=None,
            )

        @wraps(command)
        def wrapped(**options: Any) -> None:
            read_values = {name: options[name] for name in shared}
            command_values = {
                name: value for name, value in options.items() if name in command_parameters
            }
            _check_output(options.get("output"), read_values["files"] or [], endings)
            if check is not None:
                check(read_values["files"], **command_values)
            for formula in _formulas(read_values.get("covariate")):
                if "formula" not in command_parameters:
                    raise ValueError(f"--covariate is a column here, no formula; got {formula}.")
                command_values["formula"] = formula
            command(data=_read(read, without, **read_values), **command_values)

        offered = shared | dict(command_parameters)
        for name in ("data", "formula"):
            offered.pop(name, None)
        _offer(wrapped, offered)
        return one_line_errors(wrapped)

    return decorate


def _offer(command: Callable[..., None], parameters: dict[str, inspect.Parameter]) -> None:
    """Give a function these parameters, by keyword; those that must be given come first."""
    ordered = sorted(
        (parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in parameters.values()),
        key=lambda parameter: parameter.default is not parameter.empty,
    )
    command.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    command.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}


def _check_output(output: Path | None, files: list[str], endings: tuple[str, ...]) -> None:
    """Refuse an output that could not be written, or is an input, before anything is computed."""
    if output is None:
        return
    if output.suffix not in endings:
        raise ValueError(f"--output must end in {', '.join(endings)}; got {output.name!r}.")
    if not output.resolve().parent.is_dir():
        raise ValueError(f"--output must be in a folder that exists; got {str(output)!r}.")
    inputs = [Path(name.partition("=")[2] or name) for name in files] + list(map(Path, files))
    if output.resolve() in {path.resolve() for path in inputs}:
        raise ValueError(f"--output must not be an input; got {str(output)!r}. Name another file.")


def _read(
    read: Callable[..., Any] | None,
    without: tuple[str, ...],
    files: list[str] | None,
    quiet: bool,
    **options: Any,
) -> Any:
    """Load the data, or return how to; warnings become lines on standard error."""
    if not files:
        return None
    source, load_options = read_options(files, quiet=quiet, **options)
    _check_files(source)
    from bayesatk.io.load import load  # takes a second to import, errors before it do not

    for name in without:
        load_options.pop(f"{name}s" if name in ("score", "column") else name, None)
    only_shared, offered = load_options.pop("shared", False), options_of(read_options)

    def call(*more: Any) -> Any:
        with warnings.catch_warnings(record=True) as caught, _standard_input(source) as path:
            warnings.simplefilter("always", UserWarning)
            try:
                data = (read or load)(path, *more, **load_options)
            finally:  # a doubt may say why the data are refused
                for caught_warning in caught:
                    text = as_options(caught_warning.message, offered)
                    print(f"bayesatk: warning: {text}", file=sys.stderr)
        return data.shared() if only_shared else data

    return call() if read is None else call


def _source(files: list[str]) -> Any:
    """Return paths, or paths by system where names are given."""
    if not all(files):
        raise ValueError("files must be named; got an empty name. Is a variable unset?")
    named = [name.partition("=") for name in files]
    is_named = [bool(equals) and not Path(f"{a}{equals}{b}").exists() for a, equals, b in named]
    if not any(is_named):
        return files[0] if len(files) == 1 else files
    if not all(is_named):
        raise ValueError(
            f"files must be all NAME=FILE, or all without a name; got {' '.join(files)}."
        )
    paths_by_system: dict[str, list[str]] = {}
    for name, _, path in named:
        paths_by_system.setdefault(name, []).append(path)
    return paths_by_system


def _check_files(source: Any) -> None:
    """Refuse a file that is not there, in the words of `bayesatk.load`."""
    named = list(source.values()) if isinstance(source, dict) else [source]
    for files in named:
        for name in [files] if isinstance(files, str) else files:
            check_file(name)


@contextmanager
def _standard_input(source: Any) -> Iterator[Any]:
    """Put standard input into a file of the right kind, if it is what to read."""
    from bayesatk.io.logs.formats import sniff

    if source != "-":
        yield source
        return
    most = 1 << 34  # bytes, which are copied to the disk: 16 GiB
    with tempfile.TemporaryDirectory() as folder:
        content = sys.stdin.buffer.read(1 << 16)
        path = Path(folder) / f"stdin{sniff(content)}"
        with path.open("wb") as file:
            while content:
                file.write(content)
                if file.tell() > most:
                    raise ValueError(
                        f"standard input must have at most {most} bytes; it has more. Save "
                        "it to a file, and name the file."
                    )
                content = sys.stdin.buffer.read(1 << 20)
        yield path


def label(text: str) -> str | float:
    """Return an outcome as the readers see it: numbers are numbers."""
    try:
        return float(text)
    except ValueError:
        return text

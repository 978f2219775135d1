"""The command line as a user types it: what is run, and how a refusal is asserted."""

from typer.testing import CliRunner

from bayesatk.cli.app import app


def run(*arguments: object, **options):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def refused(*arguments: object) -> str:
    """Assert exit code 2 and one message on standard error, with commands on their own lines."""
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    first, *others = done.stderr.splitlines()
    assert first.startswith("bayesatk: "), done.stderr
    assert not others or any(line.startswith("   bayesatk ") for line in others), done.stderr
    return " ".join(done.stderr.split())


def succeeded(*arguments: object, **options) -> str:
    """Assert exit code 0; return what was printed, with each run of white space as one space."""
    done = run(*arguments, **options)
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())

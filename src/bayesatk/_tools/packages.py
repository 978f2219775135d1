"""Optional packages: what needs which, checked before the work starts."""

from importlib.util import find_spec

# What needs optional packages, and these packages.
COMMAND = ("the bayesatk command", "typer", "rich")
PLOTS = ("bayesatk.plots", "matplotlib")
REPORT = ("a report", "matplotlib")
INSPECT = ("bayesatk.inspect", "inspect_ai")
SAMPLING = ("sampling (bayesatk.sample and bayesatk.models)", "pymc", "nutpie")


def require(user: str, *packages: str) -> None:
    """Raise an error with the command that installs the missing packages.

    Parameters
    ----------
    user : str
        What needs the packages, such as "bayesatk.report".
    *packages : str
        Their names, by which they are imported and installed.

    Raises
    ------
    ImportError
        Naming the packages that are not installed.

    Examples
    --------
    >>> require("this example", "numpy", "a_package_that_nobody_wrote")
    Traceback (most recent call last):
    ...
    ImportError: this example needs a_package_that_nobody_wrote, which is not installed.
    Install it: pip install a_package_that_nobody_wrote
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        are, them = ("is", "it") if len(missing) == 1 else ("are", "them")
        raise ImportError(
            f"{user} needs {' and '.join(missing)}, which {are} not installed. Install {them}: "
            f"pip install {' '.join(missing)}"
        )

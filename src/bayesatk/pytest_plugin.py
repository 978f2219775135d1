"""The gate as a pytest fixture; it imports the library when it is used."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import xarray as xr

_GATES = pytest.StashKey[list[tuple[str, str]]]()
_INI = "bayesatk_inconclusive"
_CHOICES = ("fail", "skip", "pass")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say what an inconclusive gate does to its test."""
    meaning = "what an inconclusive gate does to its test: fail (default), skip or pass"
    parser.addini(_INI, meaning, default="fail")


def pytest_configure(config: pytest.Config) -> None:
    """Keep a list for the summary."""
    config.stash[_GATES] = []


@pytest.fixture
def bayesatk_gate(request: pytest.FixtureRequest) -> Callable[..., "xr.DataTree"]:
    """Return a function that fails the test where a gate does not pass.

    ``bayesatk_gate(new, baseline, policy, **options)`` takes what `bayesatk.decide.gate` takes;
    files and folders are read by `bayesatk.load`, and a policy may be the path of a TOML file. The
    test of an inconclusive gate fails too, unless pytest's configuration has
    ``bayesatk_inconclusive = skip`` (or ``pass``).
    """
    choice = str(request.config.getini(_INI))
    if choice not in _CHOICES:
        raise pytest.UsageError(f"{_INI} must be one of {', '.join(_CHOICES)}; got {choice!r}.")

    def check(new: Any, baseline: Any, policy: Any = None, **options: Any) -> "xr.DataTree":
        import bayesatk as bk

        gate = _decide(new, baseline, policy, options)
        attrs, text = gate["gate"].attrs, str(bk.table(gate, "gate"))
        for name in ("verdict", "policy_sha256"):
            request.node.user_properties.append((f"bayesatk_gate_{name}", attrs[name]))
        request.config.stash[_GATES].append((request.node.nodeid, text.splitlines()[0]))
        if attrs["verdict"] == "inconclusive" and choice == "skip":
            pytest.skip(text)
        if attrs["verdict"] == "fail" or (attrs["verdict"] == "inconclusive" and choice == "fail"):
            pytest.fail(text, pytrace=False)
        return gate

    return check


def _decide(new: Any, baseline: Any, policy: Any, options: dict[str, Any]) -> "xr.DataTree":
    """Read what are paths, and ask `bayesatk.decide.gate`."""
    import bayesatk as bk

    if isinstance(policy, str | Path):
        policy = bk.decide.GatePolicy.read(policy)
    if isinstance(new, str | Path):
        new = bk.load(new)
    if isinstance(baseline, str | Path):
        baseline = bk.load(baseline)
    return bk.decide.gate(new, baseline, policy, **options)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """List the gates and their verdicts."""
    gates = config.stash.get(_GATES, [])
    if gates:
        terminalreporter.section("gates")
        for test, line in gates:
            terminalreporter.write_line(f"{test}: {line}")

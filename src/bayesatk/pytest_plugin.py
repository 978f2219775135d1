"""Gates and repeated tests for pytest; the library is imported when they are used."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import xarray as xr

    from bayesatk.core.runs.repeated_test import RepeatedTest

_INI = "bayesatk_inconclusive"
_CHOICES = ("fail", "skip", "pass")
_MARKER = (
    "trials(most, *, at_least, alpha=0.05, raises=(), undecided='pass'): run a test up to so many "
    "times; it fails if its trials show, with error rate alpha, that it passes less often than "
    "at_least. Trials that raise AssertionError, pytest.fail or raises are failures; other errors "
    "end the test. undecided ('pass', 'fail' or 'skip') says what becomes of it if the trials do "
    "not decide"
)
_REPEATED = pytest.StashKey["RepeatedTest"]()
_COUNTED = pytest.StashKey[tuple[type[BaseException], ...]]()  # exceptions of a trial that failed
_RAISED = pytest.StashKey[BaseException | None]()
_SUMMARY = {"bayesatk_gate": "gates", "bayesatk_trials": "repeated tests"}  # by user property


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say what an inconclusive gate does to its test."""
    meaning = "what an inconclusive gate does to its test: fail (default), skip or pass"
    parser.addini(_INI, meaning, default="fail")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", _MARKER)


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
        request.node.user_properties.append(("bayesatk_gate", text.splitlines()[0]))
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Read the markers, so that a wrong one is refused before any test runs."""
    for item in items:
        marker = item.get_closest_marker("trials")
        if marker is not None:
            try:
                item.stash[_REPEATED], item.stash[_COUNTED] = _read(*marker.args, **marker.kwargs)
            except (TypeError, ValueError) as error:
                raise pytest.UsageError(f"{item.nodeid}: trials: {error}") from None


def _read(
    most: int, *, at_least: float, alpha: float = 0.05, raises: Any = (), undecided: str = "pass"
) -> "tuple[RepeatedTest, tuple[type[BaseException], ...]]":
    """Return the rule of a marker, and the exceptions of failures, or refuse what decides nothing.

    Examples
    --------
    >>> _read(20, at_least=0.9, undecided="fail")
    Traceback (most recent call last):
    ...
    ValueError: most must be at least 43 for a test to pass with undecided='fail', because 42 trials
    that all pass do not show at_least=0.9; got 20.
    """
    from bayesatk._tools.messages import one_of, proper_probability, whole_number
    from bayesatk.core.runs.repeated_test import RepeatedTest

    test = RepeatedTest(
        whole_number("most", most, 2),
        proper_probability("at_least", at_least),
        proper_probability("alpha", alpha),
        one_of("undecided", undecided, _CHOICES),
    )
    wanted = "pass" if undecided == "fail" else "fail"
    fewest = test.fewest("above" if undecided == "fail" else "below")
    if fewest is None or most < fewest:
        smaller = "do not show" if wanted == "pass" else "do not refute"
        raise ValueError(
            f"most must be at least {fewest} for a test to {wanted} with undecided={undecided!r}, "
            f"because {(fewest or 1) - 1} trials that all {wanted} {smaller} at_least={at_least}; "
            f"got {most}."
        )
    counted = raises if isinstance(raises, tuple) else (raises,)
    return test, (AssertionError, pytest.fail.Exception, *counted)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Keep the exception of a trial, which the report has as text only."""
    item.stash[_RAISED] = None if call.excinfo is None else call.excinfo.value
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run the trials of a marked test, and report them as one test."""
    if _REPEATED not in item.stash or item.config.getoption("setuponly", False):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _Trials(item).run(nextitem):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


class _Trials:
    """The trials of one test: each with fixtures of its own, but for those of wider scopes."""

    def __init__(self, item: pytest.Item) -> None:
        self.item, self.test = item, item.stash[_REPEATED]
        self.passed, self.failed, self.seconds = 0, 0, 0.0
        self.failure = ""  # text of the last trial that failed

    def run(self, nextitem: pytest.Item | None) -> list[Any]:
        """Run until the rule has decided, or a trial ends in an error; return what is reported."""
        while True:
            setup, call, ended = self._trial()
            # Beyond the parent nothing is torn down between trials.
            teardown = self._phase("teardown", nextitem=nextitem if ended else self.item.parent)
            if teardown.failed and not ended:
                self._phase("teardown", nextitem=nextitem)
            if teardown.failed or ended:
                return [report for report in (setup, call, teardown) if report is not None]

    def _trial(self) -> tuple[Any, Any, bool]:
        """Return the reports of a trial, and whether it is the last."""
        item: Any = self.item
        if hasattr(item, "_request") and self.passed + self.failed:
            item._initrequest()  # as pytest does before it runs a test again
        setup = self._phase("setup")
        if not setup.passed:
            return setup, None, True
        call = self._phase("call")
        self.seconds += call.duration
        if call.failed and isinstance(self.item.stash[_RAISED], self.item.stash[_COUNTED]):
            self.failed, self.failure = self.failed + 1, call.longreprtext
        elif call.passed:
            self.passed += 1
        else:  # an error, or skipped: no verdict
            tried = self.passed + self.failed
            text = f"in trial {tried + 1}; {self.passed} of the {tried} before it passed"
            call.sections.append(("bayesatk trials", text))
            return setup, call, True
        ended = self.test.ended(self.passed, self.failed)
        return setup, self._verdict(call) if ended else call, ended

    def _phase(self, when: Any, **options: Any) -> Any:
        from _pytest.runner import call_and_report  # pytest-rerunfailures builds on it, too

        return call_and_report(self.item, when, log=False, **options)

    def _verdict(self, report: Any) -> Any:
        """Turn the report of the last trial into that of the test."""
        verdict = self.test.verdict(self.passed, self.failed)
        outcome = self.test.outcome(verdict)
        line = f"{outcome.upper()}: {self._sentence(verdict)}"
        self.item.user_properties.append(("bayesatk_trials", line))  # the teardown has them
        report.duration = self.seconds
        report.outcome = {"pass": "passed", "fail": "failed", "skip": "skipped"}[outcome]
        report.longrepr = None
        if outcome == "fail":
            shown = f"\n\nThe last trial that failed:\n\n{self.failure}" * bool(self.failure)
            report.longrepr = line + shown
        elif outcome == "skip":
            path, line_number, _ = self.item.location
            report.longrepr = (path, line_number or 0, line)
        return report

    def _sentence(self, verdict: str) -> str:
        tried, floor = self.passed + self.failed, f"{self.test.at_least:g}"
        low, high = self.test.interval(self.passed, self.failed)
        shown = {
            "below": f"success probability below {floor}",
            "above": f"success probability above {floor}",
            "undecided": f"neither below nor above {floor} is shown",
        }[verdict]
        left = self.test.most - tried
        ending = f"; {left} more could not change that" * (verdict == "undecided" and left > 0)
        return (
            f"{self.passed} of {tried} trials passed: {shown} ({1 - 2 * self.test.alpha:.0%} "
            f"interval {low:.2f} to {high:.2f}, for any number of looks){ending}"
        )


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List gates and repeated tests with their verdicts, those of xdist's workers too."""
    reports = [report for group in terminalreporter.stats.values() for report in group]
    for name, title in _SUMMARY.items():
        lines = {
            f"{report.nodeid}: {text}": None
            for report in reports
            for key, text in getattr(report, "user_properties", ())
            if key == name
        }
        if lines:
            terminalreporter.section(title)
            for line in lines:
                terminalreporter.write_line(line)

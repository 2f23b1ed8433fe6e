"""A pytest plugin: skipped tests are listed with their reasons, and the garbage collector leaves collected tests alone."""

import atexit
import gc
from collections import Counter

import pytest

gc.disable()

atexit.register(gc.freeze)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-skips", action="store_true", help="fail the run, with exit status 1, when a test was skipped"
    )


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    # The reporter of the controller has the tests of all workers of xdist; a worker has none.
    if reporter and session.config.getoption("no_skips") and exitstatus == pytest.ExitCode.OK and _reasons(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reasons = _reasons(terminalreporter)
    if not reasons:
        return
    terminalreporter.ensure_newline()
    terminalreporter.section("skipped tests")
    for reason, count in sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0])):
        terminalreporter.write_line(f"{count:5}  {reason}")
    if config.getoption("no_skips"):
        terminalreporter.write_line(f"FAILED: --no-skips allows no skipped test (got {reasons.total()})", red=True)


def _reasons(reporter: pytest.TerminalReporter) -> Counter[str]:
    """The number of skipped tests for each reason. A module that was skipped as a whole counts as one."""
    return Counter(_reason(report) for report in reporter.stats.get("skipped", []))


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    # A path, a line and a text; what was not skipped by pytest itself has another shape.
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return " ".join(text.removeprefix("Skipped: ").split())

"""Which tests a session passes, and what it must not keep to itself: which were skipped and why, what was excused or
expected to fail, and that nothing ran."""

import collections
import pathlib
import signal
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "shared"), str(HERE.parent / "contrib")]

import excuses  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="also run the whole matrix of policies and mailboxes, and what takes "
                     "long or needs much memory")
    parser.addoption("--may-be-empty", action="store_true", help="it is no failure if nothing ran, as another session has")
    parser.addoption("--policies", metavar="NAME,...", help="run only the tests that go through policies, under these")


def is_chosen(item, options):
    if options.policies:
        flow = item.callspec.params.get("flow") if hasattr(item, "callspec") else None
        if flow is None or flow.policy not in options.policies.split(","):
            return False
    return options.all or "slow" not in item.keywords and (options.policies or "matrix" not in item.keywords)


def pytest_collection_modifyitems(config, items):
    chosen = {item: is_chosen(item, config.option) for item in items}
    config.hook.pytest_deselected(items=[item for item in items if not chosen[item]])
    items[:] = [item for item in items if chosen[item]]


def outcomes(config, kind):
    return config.pluginmanager.get_plugin("terminalreporter").stats.get(kind, [])


def nothing_ran(config):
    """Tests that were all skipped have shown as little as none."""
    return not (config.option.collectonly or config.option.may_be_empty or any(outcomes(config, kind) for kind in ("passed", "failed", "error")))


def pytest_sessionfinish(session, exitstatus):
    if exitstatus == pytest.ExitCode.OK and nothing_ran(session.config):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.option.may_be_empty:
        session.exitstatus = pytest.ExitCode.OK


def stop_once(*_):
    """Whoever is asked to end, be it by a key or by contrib/check, takes away first what its tests have started."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    raise KeyboardInterrupt


def pytest_configure():
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop_once)


def pytest_terminal_summary(terminalreporter, config):
    if nothing_ran(config):
        terminalreporter.write_line("nothing was tested: no test was chosen (some only with --all), or all of them were skipped", red=True)
    skipped = [report.longrepr[2].removeprefix("Skipped: ") for report in outcomes(config, "skipped")]
    told = {"skipped": skipped, "excused": excuses.all_of_them(),
            "expected to fail, and did": [report.wasxfail for report in outcomes(config, "xfailed")],
            "expected to fail, and passed": [report.wasxfail for report in outcomes(config, "xpassed")]}
    for what, reasons in told.items():
        for reason, count in collections.Counter(reasons).most_common():
            terminalreporter.write_line(f"{count:6} {what}: {reason}")
    terminalreporter.write_line(f"skipped {len(skipped)}, excused {len(told['excused'])}")

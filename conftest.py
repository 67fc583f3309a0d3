"""Checks that the project is installed; orders the files; fails where an oracle test must not be skipped."""

import importlib.util

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--strict-oracles",
        action="store_true",
        help="fail where an oracle test is skipped: it has compared nothing",
    )


def pytest_configure(config):
    if not _is_installed():
        pytest.exit("rembert_tf is not installed: run `pip install -e .` in the checkout first.", 4)


def _is_installed() -> bool:
    try:
        return importlib.util.find_spec("rembert_tf.pipelines") is not None
    except ImportError:
        return False


def pytest_collection_modifyitems(items):
    """Files with slow tests first: processes that take file after file then end at about the same time."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    _fail_if_skipped(outcome.get_result(), item)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    outcome = yield
    _fail_if_skipped(outcome.get_result(), collector)


def _fail_if_skipped(report, node):
    strict = node.config.getoption("--strict-oracles") and "oracles" in node.nodeid
    if report.skipped and strict:
        report.outcome = "failed"
        report.longrepr = f"--strict-oracles: {report.longrepr}"

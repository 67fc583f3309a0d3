"""Checks that the project is installed, and gives TensorFlow two CPU devices before it starts."""

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


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.skipped and item.config.getoption("--strict-oracles"):
        report.outcome = "failed"

"""Fixtures that the tests of runs share."""

import dataclasses

import pytest


@pytest.fixture(scope="session")
def settings_maker():
    """Makes, from the configurations of a run, the function `(model_dir, **changes)` that changes fields of them."""

    def from_defaults(*defaults):
        def make(model_dir, **changes):
            changes["model_dir"] = str(model_dir)
            configs = []
            for default in defaults:
                names = {field.name for field in dataclasses.fields(default)} & changes.keys()
                configs.append(dataclasses.replace(default, **{n: changes.pop(n) for n in names}))
            assert not changes
            return configs

        return make

    return from_defaults

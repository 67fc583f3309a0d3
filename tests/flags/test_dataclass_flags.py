import dataclasses
from typing import Literal

import pytest
from absl import flags

from rembert_tf.flags import dataclass_flags


def field(default, help_text="help"):
    return dataclasses.field(default=default, metadata={"help": help_text})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Example:
    required: str = dataclasses.field(metadata={"help": "A path."})
    number: int = field(3)
    rate: float = field(0.5)
    switch: bool = field(False)
    names: tuple[str, ...] = field(("a", "b"))
    kind: Literal["x", "y"] = field("x")
    maybe: int | None = field(None)

    def __post_init__(self):
        if self.number < 0:
            raise ValueError("`number` must not be negative")


@pytest.fixture
def own_flags(monkeypatch):
    values = flags.FlagValues()
    for name in ("DEFINE_boolean", "DEFINE_integer", "DEFINE_float", "DEFINE_string"):
        definer = getattr(flags, name)
        kind = {"boolean": bool, "integer": int, "float": float, "string": str}[name[7:]]
        monkeypatch.setitem(
            dataclass_flags._DEFINE, kind,
            lambda *a, _definer=definer, **k: _definer(*a, flag_values=values, **k),
        )  # fmt: skip
    for name in ("DEFINE_enum", "DEFINE_list"):
        definer = getattr(flags, name)
        monkeypatch.setattr(
            dataclass_flags.flags, name,
            lambda *a, _definer=definer, **k: _definer(*a, flag_values=values, **k),
        )  # fmt: skip
    monkeypatch.setattr(dataclass_flags.flags, "FLAGS", values)
    return values


def test_every_kind_of_field_comes_back(own_flags):
    dataclass_flags.define_flags(Example)
    own_flags(
        ["p", "--required=r", "--number=7", "--rate=1e-3", "--switch", "--names=c,d", "--kind=y"]
    )
    assert dataclass_flags.from_flags(Example) == Example(
        required="r", number=7, rate=1e-3, switch=True, names=("c", "d"), kind="y"
    )


def test_defaults_are_the_dataclass_defaults(own_flags):
    dataclass_flags.define_flags(Example)
    own_flags(["p", "--required=r"])
    assert dataclass_flags.from_flags(Example) == Example(required="r")
    assert own_flags["required"].help == "A path. Required."


def test_missing_and_wrong_values_are_flag_errors(own_flags):
    dataclass_flags.define_flags(Example)
    with pytest.raises(flags.Error, match="required"):
        own_flags(["p"])
    with pytest.raises(flags.Error, match="kind"):
        own_flags(["p", "--required=r", "--kind=z"])


def test_the_dataclass_checks_values(own_flags):
    dataclass_flags.define_flags(Example)
    own_flags(["p", "--required=r", "--number=-1"])
    with pytest.raises(ValueError, match="`number`"):
        dataclass_flags.from_flags(Example)


def test_excluded_fields_get_no_flag_and_take_the_given_value(own_flags):
    dataclass_flags.define_flags(Example, exclude=["required"])
    assert "required" not in own_flags
    own_flags(["p"])
    assert dataclass_flags.from_flags(Example, exclude=["required"], required="s").required == "s"


def test_a_type_that_no_flag_can_hold_is_refused(own_flags):
    @dataclasses.dataclass
    class Bad:
        mapping: dict = field(None)

    with pytest.raises(TypeError, match="mapping"):
        dataclass_flags.define_flags(Bad)

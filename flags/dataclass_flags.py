"""absl flags derived from dataclasses: a field's name, type, default and help become a flag.

This module imports no dataclass of the project: each binary passes its own.
"""

import dataclasses
import types
import typing
from collections.abc import Collection
from typing import Any, TypeVar

from absl import flags

T = TypeVar("T")

_DEFINE = {
    bool: flags.DEFINE_boolean,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
}


def define_flags(dataclass_type: type, *, exclude: Collection[str] = ()) -> None:
    """Defines one flag for each field of `dataclass_type`.

    A field without a default becomes a required flag. `X | None` is an optional X, `tuple[str, ...]` a
    comma-separated list, `Literal[...]` an enumeration.

    Args:
        dataclass_type: a dataclass whose fields carry `metadata={"help": ...}`.
        exclude: names of fields that get no flag (the binary sets them itself).

    Raises:
        TypeError: a field has a type that no flag can hold.
    """
    types_of_fields = typing.get_type_hints(dataclass_type)
    for field in dataclasses.fields(dataclass_type):
        if field.name not in exclude:
            _define_flag(field, types_of_fields[field.name])


def from_flags(dataclass_type: type[T], *, exclude: Collection[str] = (), **values: Any) -> T:
    """Returns a `dataclass_type` filled from the parsed flags; `values` override them.

    Raises:
        ValueError: the dataclass refuses a value.
    """
    for field in dataclasses.fields(dataclass_type):
        if field.name not in exclude and field.name not in values:
            value = flags.FLAGS[field.name].value
            values[field.name] = tuple(value) if isinstance(value, list) else value
    return dataclass_type(**values)


def _define_flag(field: dataclasses.Field, kind: Any) -> None:
    required = field.default is dataclasses.MISSING
    default = None if required else field.default
    help_text = field.metadata["help"] + (" Required." if required else "")
    kind = _without_none(kind)
    if typing.get_origin(kind) is typing.Literal:
        flags.DEFINE_enum(
            field.name, default, list(typing.get_args(kind)), help_text, required=required
        )
    elif kind == tuple[str, ...]:
        default = None if required else list(default)
        flags.DEFINE_list(field.name, default, help_text, required=required)
    elif kind in _DEFINE:
        _DEFINE[kind](field.name, default, help_text, required=required)
    else:
        raise TypeError(
            f"No flag can hold the type of field `{field.name}`. Received: type={kind!r}"
        )


def _without_none(kind: Any) -> Any:
    """Returns X for `X | None`, anything else unchanged."""
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        kinds = [k for k in typing.get_args(kind) if k is not type(None)]
        if len(kinds) == 1:
            return kinds[0]
    return kind

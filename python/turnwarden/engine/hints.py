"""Type hints to JSON Schema, and plain data to what the hints say; standard library only.

`HintReader.read(hint)` makes a `HintedType`: a schema, and a function that brings a JSON value to
the type where that loses nothing (`"3"` to 3, `3.0` to 3, a mapping to a dataclass). Known
are str, int, float, bool, None, Any, list, dict, tuple, set and their abstract kin, Literal,
unions, Enum, dataclass, TypedDict, NewType and Annotated. What does not fit is a `HintError` that
says where.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import math
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

__all__ = ["HintError", "HintReader", "HintedType", "UnsupportedHintError", "field_converters"]

Schema: TypeAlias = dict[str, Any]
Convert: TypeAlias = Callable[[Any], Any]


class HintError(Exception):
    """A value that does not fit its hint.

    Attributes:
        path: Where in the value, such as `.filters[2]`; empty for the value itself.
        problem: What was expected, and what was found.
    """

    def __init__(self, problem: str, path: str = "") -> None:
        self.problem = problem
        self.path = path
        super().__init__(problem, path)

    def __str__(self) -> str:
        return f"{self.path.lstrip('.')}: {self.problem}" if self.path else self.problem

    def inside(self, step: str) -> HintError:
        """The same error, seen from the value around it."""
        return HintError(self.problem, step + self.path)


class UnsupportedHintError(TypeError):
    """A hint that this module does not know."""


@dataclass(frozen=True, slots=True)
class HintedType:
    """What a hint says.

    Attributes:
        schema: JSON Schema of the values.
        convert: Brings a JSON value to the type, or raises `HintError`.
        accepts: Whether a value fits as it is: decides which member of a union it is.
    """

    schema: Schema
    convert: Convert
    accepts: Callable[[Any], bool]


def field_converters(kind: type) -> dict[str, Convert]:
    """A converter for each field of a dataclass; fields with unknown hints are left out."""
    converters: dict[str, Convert] = {}
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        try:
            converters[name] = HintReader().read(hint).convert
        except UnsupportedHintError:
            continue
    return converters


class HintReader:
    """Reads hints that belong together, such as those of one function.

    Attributes:
        definitions: Schemas of the dataclasses and TypedDicts met, behind `#/$defs/<name>`.

    Example:
        >>> reader = HintReader()
        >>> known = reader.read(list[int] | None)
        >>> known.schema
        {'anyOf': [{'type': 'array', 'items': {'type': 'integer'}}, {'type': 'null'}]}
        >>> known.convert(["1", 2.0])
        [1, 2]
    """

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}
        self._records: dict[Any, HintedType] = {}

    def read(self, hint: Any) -> HintedType:
        """Read one hint.

        Raises:
            UnsupportedHintError: A hint that is not known; the message names it.
        """
        if hint in (Any, object) or isinstance(hint, typing.TypeVar):
            return HintedType({}, lambda value: value, lambda _: True)
        if hint is None or hint is type(None):
            return _NULL
        if isinstance(hint, type) and hint in _SCALARS:
            return _SCALARS[hint]
        if isinstance(hint, typing.NewType):
            return self.read(hint.__supertype__)
        if (aliased := getattr(hint, "__value__", None)) is not None:  # `type X = ...`
            return self.read(aliased)
        origin = typing.get_origin(hint)
        if origin is not None:
            return self._generic(hint, origin, typing.get_args(hint))
        if isinstance(hint, type):
            return self._class(hint)
        raise UnsupportedHintError(f"the type hint {hint!r} is not supported")

    def _generic(self, hint: Any, origin: Any, arguments: tuple[Any, ...]) -> HintedType:
        if origin is typing.Annotated:
            return _described(self.read(arguments[0]), arguments[1:])
        if origin in (typing.Required, typing.NotRequired):
            return self.read(arguments[0])
        if origin is Literal:
            return _one_of(arguments)
        if origin in (typing.Union, types.UnionType):
            return _union([self.read(argument) for argument in arguments])
        if origin is tuple:
            return self._tuple(arguments)
        if origin in _ARRAYS:
            return _array(self.read(arguments[0]), _ARRAYS[origin])
        if origin in _OBJECTS:
            return _object(self.read(arguments[0]), self.read(arguments[1]))
        if _is_record_type(origin):
            return self._class(origin)
        raise UnsupportedHintError(f"the type hint {hint!r} is not supported")

    def _class(self, kind: Any) -> HintedType:
        if kind is tuple:
            return _array(self.read(Any), tuple)
        if kind in _ARRAYS:
            return _array(self.read(Any), _ARRAYS[kind])
        if kind in _OBJECTS:
            return _object(self.read(str), self.read(Any))
        if issubclass(kind, enum.Enum):
            return _enumeration(kind)
        if _is_record_type(kind):
            return self._record(kind)
        raise UnsupportedHintError(f"the type {kind.__qualname__} is not supported")

    def _tuple(self, arguments: tuple[Any, ...]) -> HintedType:
        if len(arguments) == 2 and arguments[1] is ...:
            return _array(self.read(arguments[0]), tuple)
        return _fixed_tuple([self.read(argument) for argument in arguments if argument != ()])

    def _record(self, kind: Any) -> HintedType:
        """A dataclass or TypedDict, which may refer to itself."""
        if kind in self._records:
            return self._records[kind]
        name = self._unique_name(kind)
        self.definitions[name] = {}
        fields: dict[str, HintedType] = {}
        shape = _Shape.of(kind)
        known = HintedType(
            {"$ref": f"#/$defs/{name}"},
            lambda value: _to_record(kind, shape, fields, value),
            lambda value: _is_record(shape, fields, value),
        )
        self._records[kind] = known
        for field_name, hint in shape.hints.items():
            fields[field_name] = self.read(hint)
        self.definitions[name] = _record_schema(kind, shape, fields)
        return known

    def _unique_name(self, kind: Any) -> str:
        name, count = kind.__name__, 1
        while name in self.definitions:
            count += 1
            name = f"{kind.__name__}{count}"
        return name


# Scalars


def _found(value: object) -> str:
    if value is None:
        return "found null"
    if isinstance(value, (bool, int, float, str)):
        text = repr(value)
        return f"found {text if len(text) <= 80 else text[:77] + '...'}"
    names = {"dict": "an object", "list": "an array"}
    return f"found {names.get(type(value).__name__, type(value).__name__)}"


_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,4000}\s*\Z")


def _to_integer(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _INTEGER.match(value):
        return int(value)
    raise HintError(f"expected an integer, {_found(value)}")


def _to_number(value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _as_float(value)
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return number
    raise HintError(f"expected a number, {_found(value)}")


def _as_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise HintError("expected a number that a float holds, found a larger one") from None


def _to_boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise HintError(f"expected true or false, {_found(value)}")


def _to_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise HintError(f"expected a string, {_found(value)}")


def _to_null(value: Any) -> None:
    if value is not None:
        raise HintError(f"expected null, {_found(value)}")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_NULL = HintedType({"type": "null"}, _to_null, lambda value: value is None)
_SCALARS: dict[type, HintedType] = {
    str: HintedType({"type": "string"}, _to_string, lambda value: isinstance(value, str)),
    int: HintedType({"type": "integer"}, _to_integer, _is_integer),
    float: HintedType({"type": "number"}, _to_number, _is_number),
    bool: HintedType({"type": "boolean"}, _to_boolean, lambda value: isinstance(value, bool)),
}

# Choices


def _described(known: HintedType, notes: Sequence[Any]) -> HintedType:
    """With the description that `Annotated` gives: a string, or an object that holds one."""
    for note in notes:
        text = note if isinstance(note, str) else getattr(note, "documentation", None)
        if isinstance(text, str):
            schema = {**known.schema, "description": text}
            return HintedType(schema, known.convert, known.accepts)
    return known


def _same(left: Any, right: Any) -> bool:
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def _one_of(values: Sequence[Any]) -> HintedType:
    """A Literal; members of an Enum stand for their values."""
    plain = [value.value if isinstance(value, enum.Enum) else value for value in values]

    def convert(value: Any) -> Any:
        for choice, meant in zip(plain, values, strict=True):
            if _same(choice, value) or _same(meant, value):
                return meant
        raise HintError(f"expected one of {_listed(plain)}, {_found(value)}")

    def accepts(value: Any) -> bool:
        return any(_same(choice, value) for choice in plain)

    return HintedType(_choice_schema(plain), convert, accepts)


def _enumeration(kind: type[enum.Enum]) -> HintedType:
    members = list(kind)
    plain = [member.value for member in members]

    def convert(value: Any) -> Any:
        for choice, member in zip(plain, members, strict=True):
            if value is member or _same(choice, value):
                return member
        raise HintError(f"expected one of {_listed(plain)}, {_found(value)}")

    def accepts(value: Any) -> bool:
        return any(_same(choice, value) for choice in plain)

    return HintedType(_choice_schema(plain), convert, accepts)


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(repr(value) for value in values)


def _choice_schema(values: Sequence[Any]) -> Schema:
    names: dict[Any, str] = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        type(None): "null",
    }
    kinds = {names.get(type(cast("object", value))) for value in values}
    kind = kinds.pop() if len(kinds) == 1 else None
    return {"type": kind, "enum": list(values)} if kind else {"enum": list(values)}


def _union(members: Sequence[HintedType]) -> HintedType:
    def convert(value: Any) -> Any:
        for member in members:
            if member.accepts(value):
                return member.convert(value)
        problems: list[HintError] = []
        for member in members:
            try:
                return member.convert(value)
            except HintError as error:
                problems.append(error)
        inner = max(problems, key=lambda error: len(error.path))
        if inner.path:
            raise inner
        expected = " or ".join(error.problem.split(", found")[0] for error in problems)
        raise HintError(f"{expected.replace(' or expected ', ' or ')}, {_found(value)}")

    def accepts(value: Any) -> bool:
        return any(member.accepts(value) for member in members)

    return HintedType({"anyOf": [member.schema for member in members]}, convert, accepts)


# Arrays and objects


_ARRAYS: dict[Any, Callable[[list[Any]], Any]] = {
    list: list,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Iterable: list,
    collections.abc.Collection: list,
    collections.abc.Set: set,
    collections.abc.MutableSet: set,
}
_SETS: tuple[Any, ...] = (set, frozenset)
_OBJECTS: frozenset[Any] = frozenset(
    {dict, collections.abc.Mapping, collections.abc.MutableMapping}
)


def _array(item: HintedType, make: Callable[[list[Any]], Any]) -> HintedType:
    schema: Schema = {"type": "array", "items": item.schema}
    if make in _SETS:
        schema["uniqueItems"] = True

    def convert(value: Any) -> Any:
        entries = [_at(item, f"[{i}]", entry) for i, entry in enumerate(_items(value))]
        try:
            return make(entries)
        except TypeError as error:  # a set of what has no hash
            raise HintError(str(error)) from None

    def accepts(value: Any) -> bool:
        return isinstance(value, (list, tuple)) and all(
            item.accepts(entry) for entry in cast("Sequence[Any]", value)
        )

    return HintedType(schema, convert, accepts)


def _fixed_tuple(members: Sequence[HintedType]) -> HintedType:
    length = len(members)
    schema: Schema = {"type": "array", "minItems": length, "maxItems": length}
    if members:
        schema["prefixItems"] = [member.schema for member in members]

    def convert(value: Any) -> Any:
        entries = _items(value)
        if len(entries) != length:
            raise HintError(f"expected an array of {length}, found one of {len(entries)}")
        pairs = enumerate(zip(members, entries, strict=True))
        return tuple(_at(member, f"[{i}]", entry) for i, (member, entry) in pairs)

    def accepts(value: Any) -> bool:
        if not isinstance(value, (list, tuple)):
            return False
        entries = cast("Sequence[Any]", value)
        return len(entries) == length and all(
            member.accepts(entry) for member, entry in zip(members, entries, strict=True)
        )

    return HintedType(schema, convert, accepts)


def _items(value: Any) -> Sequence[Any]:
    if isinstance(value, (list, tuple)):
        return cast("Sequence[Any]", value)
    raise HintError(f"expected an array, {_found(value)}")


def _object(key: HintedType, item: HintedType) -> HintedType:
    schema: Schema = {"type": "object", "additionalProperties": item.schema or True}

    def convert(value: Any) -> Any:
        entries = _members(value)
        return {
            _at(key, f".{name}", name): _at(item, f".{name}", entry)
            for name, entry in entries.items()
        }

    def accepts(value: Any) -> bool:
        return isinstance(value, Mapping) and all(
            key.accepts(name) and item.accepts(entry)
            for name, entry in cast("Mapping[Any, Any]", value).items()
        )

    return HintedType(schema, convert, accepts)


def _members(value: Any) -> Mapping[Any, Any]:
    if isinstance(value, Mapping):
        return cast("Mapping[Any, Any]", value)
    raise HintError(f"expected an object, {_found(value)}")


def _at(known: HintedType, step: str, value: Any) -> Any:
    try:
        return known.convert(value)
    except HintError as error:
        raise error.inside(step) from None


# Dataclasses and TypedDicts


def _is_typed_dict(kind: Any) -> bool:
    # Those of `typing_extensions` are known by their keys.
    return typing.is_typeddict(kind) or hasattr(kind, "__required_keys__")


def _is_record_type(kind: Any) -> bool:
    is_class = isinstance(kind, type)
    return is_class and (dataclasses.is_dataclass(cast("Any", kind)) or _is_typed_dict(kind))


@dataclass(frozen=True, slots=True)
class _Shape:
    """The fields of a record: their hints, which are required, which is the JSON default."""

    hints: dict[str, Any]
    required: list[str]
    defaults: dict[str, Any]
    is_typed_dict: bool

    @classmethod
    def of(cls, kind: Any) -> _Shape:
        hints = typing.get_type_hints(kind, include_extras=True)
        if _is_typed_dict(kind):
            required = [name for name, hint in hints.items() if _is_required(kind, name, hint)]
            return cls(hints, required, {}, True)
        fields = [entry for entry in dataclasses.fields(kind) if entry.init]
        required = [
            entry.name
            for entry in fields
            if entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING
        ]
        defaults = {
            entry.name: entry.default
            for entry in fields
            if entry.default is not dataclasses.MISSING
        }
        return cls({entry.name: hints[entry.name] for entry in fields}, required, defaults, False)


def _is_required(kind: Any, name: str, hint: Any) -> bool:
    """Whether a TypedDict needs this key.

    `__required_keys__` does not see marks in annotations that are still text.
    """
    mark = typing.get_origin(hint)
    if mark in (typing.Required, typing.NotRequired):
        return mark is typing.Required
    return name in kind.__required_keys__


def _record_schema(kind: type, shape: _Shape, fields: Mapping[str, HintedType]) -> Schema:
    properties: dict[str, Schema] = {}
    for name, known in fields.items():
        properties[name] = with_default(known.schema, shape.defaults.get(name, ...))
    return {
        "type": "object",
        "title": kind.__name__,
        "properties": properties,
        "required": list(shape.required),
        "additionalProperties": False,
    }


def with_default(schema: Schema, default: Any) -> Schema:
    """The schema with a default, where JSON can carry that; `...` means none."""
    if isinstance(default, enum.Enum):
        default = default.value
    if default is None or isinstance(default, (bool, int, float, str)):
        return {**schema, "default": default}
    return schema


def _to_record(kind: Any, shape: _Shape, fields: Mapping[str, HintedType], value: Any) -> Any:
    if not shape.is_typed_dict and isinstance(value, kind):
        return value
    members = _members(value)
    for name in shape.required:
        if name not in members:
            raise HintError("is missing", f".{name}")
    for name in members:
        if name not in fields:
            raise HintError(f"is not known; known are {_listed(list(fields))}", f".{name}")
    values = {name: _at(fields[name], f".{name}", entry) for name, entry in members.items()}
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:  # what the class itself refuses
        raise HintError(str(error)) from error


def _is_record(shape: _Shape, fields: Mapping[str, HintedType], value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    members = cast("Mapping[str, Any]", value)
    return all(name in members for name in shape.required) and all(
        name in fields and fields[name].accepts(entry) for name, entry in members.items()
    )

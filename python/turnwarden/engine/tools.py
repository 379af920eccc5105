"""Tools of an agent loop: plain functions, described by their signature and docstring.

`@tool` is optional; a loop makes a `Tool` of every function it is given. The JSON Schema of the
parameters comes from the type hints: by pydantic where that is installed, else by
`turnwarden.engine.hints`. Arguments are brought to the hinted types before the function is called;
what does not fit is an `ArgumentsError` that lists every problem.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast, overload

from turnwarden._core import TurnwardenError
from turnwarden.engine.checking import check_seconds
from turnwarden.engine.docstrings import read_docstring
from turnwarden.engine.errors import ToolDefinitionError
from turnwarden.engine.hints import HintError, HintReader, UnsupportedHintError, with_default
from turnwarden.engine.results import error_text
from turnwarden.state import UNSET, Unset

__all__ = ["ArgumentsError", "Tool", "collect_tools", "tool"]

Schema: TypeAlias = dict[str, Any]
Convert: TypeAlias = Callable[[Any], Any]


class ArgumentsError(TurnwardenError, ValueError):
    """Arguments that do not fit a tool.

    Attributes:
        tool_name: Which tool.
        problems: Each with the path of the argument.
    """

    def __init__(self, tool_name: str, problems: Sequence[str]) -> None:
        self.tool_name = tool_name
        self.problems = tuple(problems)
        super().__init__(tool_name, self.problems)

    def __str__(self) -> str:
        return f"the arguments of {self.tool_name} do not fit: {'; '.join(self.problems)}"


class Tool:
    """A function that a model may call.

    Args:
        function: Synchronous or asynchronous.
        name: By default the function's.
        description: By default what the docstring says before its sections.
        thread: Run the (synchronous) function in a thread, so that it blocks nothing. A thread
            cannot be killed: one that outlives the timeout is abandoned and reported.
        timeout: Seconds, None for no limit; by default the loop's. It holds for asynchronous
            functions and for threads; a synchronous function without a thread cannot be stopped.
        parameters: A JSON Schema in place of the one from the hints. The arguments are then passed
            as keywords, unchecked but for what it requires.

    Attributes:
        name: What the model calls it.
        description: What the model is told of it.
        parameters: JSON Schema of the arguments, an object.
        function: What is called.
        thread: Whether in a thread.
        timeout: Seconds, None, or UNSET for the loop's.

    Raises:
        ToolDefinitionError: The function cannot be a tool; the message says why.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        thread: bool = False,
        timeout: float | Unset | None = UNSET,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        if not callable(function):
            raise ToolDefinitionError(f"a tool must be callable, not {type(function).__name__}")
        self.function = function
        self.name = _name_of(function) if name is None else name
        named = isinstance(cast("object", self.name), str) and bool(self.name)
        if not named or any(character.isspace() for character in self.name):
            raise ToolDefinitionError(f"{self.name!r} is no name for a tool: no space, not empty")
        self.is_async = _is_async(function)
        if thread and self.is_async:
            raise ToolDefinitionError(f"{self.name} is asynchronous: it needs no thread")
        _refuse_generators(function, self.name)
        if not isinstance(timeout, Unset):
            try:
                check_seconds(f"the timeout of {self.name}", timeout)
            except ValueError as error:
                raise ToolDefinitionError(str(error)) from None
        self.thread = thread
        self.timeout = timeout
        summary, documented = read_docstring(inspect.getdoc(function) or "")
        self.description = summary if description is None else description
        if parameters is None:
            self._parameters, self._extra, self.parameters = _describe(
                function, self.name, documented
            )
        else:
            self._parameters, self._extra = _from_schema(parameters), True
            self.parameters = dict(parameters)
        self.__doc__ = function.__doc__

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself."""
        return self.function(*args, **kwargs)

    def bind(self, arguments: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Check a model's arguments and bring them to the hinted types.

        Returns:
            The positional and the keyword arguments to call the function with.

        Raises:
            ArgumentsError: They do not fit.
        """
        problems: list[str] = []
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for name, parameter in self._parameters.items():
            if name not in arguments:
                if parameter.is_required:
                    problems.append(f"{name}: is missing")
                continue
            try:
                value = parameter.convert(arguments[name])
            except HintError as error:
                problems.append(f"{name}{error.path}: {error.problem}")
                continue
            except Exception as error:  # too deep, or what the types' own code raises
                problems.append(f"{name}: {type(error).__name__}: {error_text(error)}")
                continue
            if parameter.is_positional_only:
                positional.append(value)
            else:
                keywords[name] = value
        if len(positional) + len(keywords) < len(arguments):
            self._take_others(arguments, keywords, problems)
        if problems:
            raise ArgumentsError(self.name, problems)
        return positional, keywords

    def _take_others(
        self, arguments: Mapping[str, Any], keywords: dict[str, Any], problems: list[str]
    ) -> None:
        """Arguments that are no parameters: for `**more`, or a problem each."""
        for name in [name for name in arguments if name not in self._parameters]:
            if self._extra:
                keywords[name] = arguments[name]
            else:
                known = ", ".join(self._parameters) or "none"
                problems.append(f"{name}: is not a parameter; known are {known}")

    def to_openai(self) -> dict[str, Any]:
        """The definition as OpenAI's chat API takes it."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}

    def to_anthropic(self) -> dict[str, Any]:
        """The definition as Anthropic's API takes it."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": self.parameters,
        }


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    thread: bool = False,
    timeout: float | Unset | None = UNSET,
    parameters: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    thread: bool = False,
    timeout: float | Unset | None = UNSET,
    parameters: Mapping[str, Any] | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a function a tool; see `Tool` for the options.

    Example:
        >>> @tool(timeout=5)
        ... def add(a: int, b: int = 1) -> int:
        ...     '''Add two numbers.'''
        ...     return a + b
        >>> add.parameters["required"], add(1, 2)
        (['a'], 3)
    """

    def make(function: Callable[..., Any]) -> Tool:
        return Tool(
            function,
            name=name,
            description=description,
            thread=thread,
            timeout=timeout,
            parameters=parameters,
        )

    return make if function is None else make(function)


def collect_tools(tools: Iterable[Tool | Callable[..., Any]]) -> dict[str, Tool]:
    """Tools by name.

    Raises:
        ToolDefinitionError: One that cannot be a tool, or two of one name.
    """
    collected: dict[str, Tool] = {}
    for item in tools:
        made = item if isinstance(item, Tool) else Tool(item)
        if made.name in collected:
            raise ToolDefinitionError(f"two tools are named {made.name}; give one another name")
        collected[made.name] = made
    return collected


# Signatures


@dataclass(frozen=True, slots=True)
class _Parameter:
    convert: Convert
    is_required: bool
    is_positional_only: bool


def _name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = cast("functools.partial[Any]", function).func
    name = getattr(function, "__name__", type(function).__name__)
    if name == "<lambda>":
        raise ToolDefinitionError("a lambda has no name for the model: use Tool(..., name=...)")
    return name


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object whose call is asynchronous
    )


def _refuse_generators(function: Any, name: str) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolDefinitionError(f"{name} is a generator: a tool must return its whole result")


def _describe(
    function: Callable[..., Any], name: str, documented: Mapping[str, str]
) -> tuple[dict[str, _Parameter], bool, Schema]:
    """Parameters, whether others are taken too, and the schema of all."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(
            f"{name} does not tell its parameters ({error}); describe them by parameters=, a JSON "
            "Schema"
        ) from error
    hints = _hints_of(function, name)
    named = {
        parameter.name: parameter
        for parameter in signature.parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }
    extra = any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values()
    )
    wanted = {key: hints.get(key, Any) for key in named}
    schemas, converters, definitions = _read_hints(wanted, name)
    properties: dict[str, Schema] = {}
    for key, parameter in named.items():
        properties[key] = _described(schemas[key], documented.get(key), parameter)
    schema: Schema = {
        "type": "object",
        "properties": properties,
        "required": [key for key, parameter in named.items() if _is_required(parameter)],
    }
    if not extra:
        schema["additionalProperties"] = False
    if definitions:
        schema["$defs"] = definitions
    parameters = {
        key: _Parameter(
            converters[key],
            _is_required(parameter),
            parameter.kind is parameter.POSITIONAL_ONLY,
        )
        for key, parameter in named.items()
    }
    return parameters, extra, schema


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty


def _described(schema: Schema, text: str | None, parameter: inspect.Parameter) -> Schema:
    described = dict(schema)
    if text and "description" not in described:
        described["description"] = text
    default = ... if _is_required(parameter) else parameter.default
    return with_default(described, default)


def _hints_of(function: Any, name: str) -> dict[str, Any]:
    while isinstance(function, functools.partial):
        function = cast("functools.partial[Any]", function).func
    if not inspect.isroutine(function) and not isinstance(function, type):
        function = type(function).__call__
    elif isinstance(function, type):
        function = function.__init__
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise ToolDefinitionError(
            f"a type hint of {name} cannot be resolved: {error}; "
            "types in hints must be visible in the function's module"
        ) from error


def _from_schema(schema: Mapping[str, Any]) -> dict[str, _Parameter]:
    required = cast("Sequence[str]", schema.get("required", ()))
    properties = cast("Mapping[str, Any]", schema.get("properties", {}))
    names = dict.fromkeys([*properties, *required])
    return {name: _Parameter(_unchanged, name in required, False) for name in names}


def _unchanged(value: Any) -> Any:
    return value


# Hints: pydantic where it is installed, else our own reader

_Read: TypeAlias = tuple[dict[str, Schema], dict[str, Convert], dict[str, Schema]]


def _read_hints(hints: Mapping[str, Any], name: str) -> _Read:
    if not hints:
        return {}, {}, {}
    try:
        read = _read_with_pydantic(hints)
        return read if read is not None else _read_with_standard_library(hints)
    except UnsupportedHintError as error:
        raise ToolDefinitionError(
            f"the parameters of {name} cannot be described: {error}; "
            "with pydantic installed more types are, else give `parameters=` a JSON Schema"
        ) from error


def _read_with_standard_library(hints: Mapping[str, Any]) -> _Read:
    reader = HintReader()
    known = {key: reader.read(hint) for key, hint in hints.items()}
    schemas = {key: read.schema for key, read in known.items()}
    return schemas, {key: read.convert for key, read in known.items()}, reader.definitions


def _read_with_pydantic(hints: Mapping[str, Any]) -> _Read | None:
    """None when pydantic is not installed, or does not take these hints."""
    try:
        pydantic: Any = importlib.import_module("pydantic")
    except ImportError:
        return None
    try:
        adapters: dict[str, Any] = {key: pydantic.TypeAdapter(hint) for key, hint in hints.items()}
        schemas, shared = pydantic.TypeAdapter.json_schemas(
            [(key, "validation", adapter) for key, adapter in adapters.items()]
        )
    except (pydantic.PydanticUserError, pydantic.PydanticUndefinedAnnotation):
        return None  # such as a plain TypedDict before Python 3.12
    converters = {
        key: _pydantic_converter(adapter, pydantic.ValidationError)
        for key, adapter in adapters.items()
    }
    plain = {key: _without_title(schemas[(key, "validation")]) for key in hints}
    for key, hint in hints.items():
        text = _annotated_text(hint)
        if text and "description" not in plain[key]:
            plain[key]["description"] = text
    return plain, converters, shared.get("$defs", {})


def _without_title(schema: Mapping[str, Any]) -> Schema:
    return {key: value for key, value in schema.items() if key != "title"}


def _annotated_text(hint: Any) -> str | None:
    if typing.get_origin(hint) is not typing.Annotated:
        return None
    return next((note for note in typing.get_args(hint)[1:] if isinstance(note, str)), None)


def _pydantic_converter(adapter: Any, validation_error: Any) -> Convert:
    validate = adapter.validator.validate_python

    def convert(value: Any) -> Any:
        try:
            return validate(value)
        except validation_error as error:
            first = error.errors(include_url=False, include_context=False)[0]
            path = "".join(
                f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"]
            )
            raise HintError(first["msg"], path) from None

    return convert

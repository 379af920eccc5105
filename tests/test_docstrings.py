"""Every example in the docstrings of the package runs, those of native classes included."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import turnwarden
import turnwarden._core


def documented() -> Iterator[tuple[str, object]]:
    """The modules, and the native classes and functions with their methods."""
    yield "turnwarden", turnwarden
    for info in pkgutil.walk_packages(turnwarden.__path__, "turnwarden."):
        if info.name != "turnwarden._core" and "__main__" not in info.name:
            yield info.name, info.name
    for name, value in vars(turnwarden._core).items():
        if name.startswith("__"):
            continue
        if inspect.isclass(value):
            for method, member in vars(value).items():
                yield f"{name}.{method}", member
        yield name, value


def examples() -> Iterator[doctest.DocTest]:
    finder = doctest.DocTestFinder(recurse=True)
    parser = doctest.DocTestParser()
    for name, value in documented():
        if isinstance(value, str):
            try:
                module = importlib.import_module(value)
            except ImportError:
                continue  # an integration whose extra is not installed
            yield from (test for test in finder.find(module, value) if test.examples)
            continue
        doc = getattr(value, "__doc__", None)
        if isinstance(doc, str) and ">>>" in doc:
            yield parser.get_doctest(doc, {}, f"_core.{name}", None, 0)


EXAMPLES = list(examples())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_examples_of_docstrings_run(example: doctest.DocTest) -> None:
    example.globs.setdefault("turnwarden", turnwarden)
    output: list[str] = []
    if "examples/" in example.docstring and not Path("examples").exists():
        pytest.skip("needs the examples of a source checkout")
    result = doctest.DocTestRunner().run(example, out=output.append)
    assert result.failed == 0, "".join(output)


def test_native_classes_have_examples() -> None:
    names = {example.name for example in EXAMPLES}
    assert {"_core.Reply", "_core.ToolCall", "_core.ResponseParser", "_core.parse"} <= names


def test_everything_public_is_documented() -> None:
    for name in turnwarden.__all__:
        value = getattr(turnwarden, name)
        if callable(value):
            assert inspect.getdoc(value), name

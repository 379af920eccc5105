"""The native core: see the modules of the package for what is public."""

from collections.abc import Callable
from typing import Any, TypedDict

class _BuildInfo(TypedDict):
    version: str
    profile: str
    features: list[str]

def build_info() -> _BuildInfo: ...

def argument_similarity(a: object, b: object) -> float: ...
def call_signature(
    name: str, arguments: object, *, default: Callable[[Any], object] | None = None
) -> str: ...

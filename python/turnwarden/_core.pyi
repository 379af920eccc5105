"""The native core: see the modules of the package for what is public."""

from typing import TypedDict

class _BuildInfo(TypedDict):
    version: str
    profile: str
    features: list[str]

def build_info() -> _BuildInfo: ...

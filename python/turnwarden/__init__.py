"""Reads what models reply, and guards what agents do."""

from turnwarden._core import argument_similarity, build_info, call_signature

__all__ = ["argument_similarity", "build_info", "call_signature"]

if build_info()["profile"] == "debug":
    import warnings

    warnings.warn(
        "turnwarden's native core is a debug build: it is many times slower than a release build; "
        "build one with `make` or `maturin develop --release`",
        RuntimeWarning,
        stacklevel=2,
    )

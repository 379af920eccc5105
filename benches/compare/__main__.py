"""Runs all side-by-side scripts: `python -m benches.compare [--quick] [NAME ...]`."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import os
import pkgutil
import platform
import sys

import turnwarden

import benches.compare
from benches.compare import measure

PEERS = ["jiter", "orjson", "json-repair", "dirtyjson", "rapidfuzz", "xxhash"]


def scripts() -> list[str]:
    """The names of the scripts: the modules beside this one that have a `main`."""
    names = [info.name for info in pkgutil.iter_modules(benches.compare.__path__)]
    return sorted(name for name in names if name not in {"__main__", "measure"})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benches.compare", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(scripts())}")
    parser.add_argument(
        "--quick", action="store_true", help="few repeats: that it runs, no figures"
    )
    options = parser.parse_args()
    if unknown := set(options.names) - set(scripts()):
        parser.error(f"no script named {', '.join(sorted(unknown))}")
    features = ", ".join(turnwarden.build_info()["features"]) or "version-specific"
    print(
        f"Python {sys.version.split()[0]}, {platform.machine()}, {os.cpu_count()} cores, {features}"
    )
    print(", ".join(f"{peer} {importlib.metadata.version(peer)}" for peer in PEERS))
    for name in options.names or scripts():
        print(f"\n## {name}\n")
        script = importlib.import_module(f"benches.compare.{name}")
        script.main(measure.QUICK if options.quick else measure.FULL)


if __name__ == "__main__":
    main()

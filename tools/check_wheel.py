"""Check a wheel as a user gets it: what it holds, and that its demo runs without Rust.

Usage: python tools/check_wheel.py DIST_FOLDER
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

REQUIRED = (
    "turnwarden/__init__.py",
    "turnwarden/_core.pyi",
    "turnwarden/cli/__init__.py",
    "turnwarden/py.typed",
)


def check_contents(wheel: Path) -> list[str]:
    """Return what is missing from the wheel or has no place in it."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        requirements = [
            line
            for line in archive.read(metadata).decode().splitlines()
            if line.startswith("Requires-Dist:") and "extra ==" not in line
        ]
    findings = [f"missing: {name}" for name in REQUIRED if name not in names]
    findings += [f"the core must need nothing: {line}" for line in requirements]
    findings += [f"stray file: {name}" for name in names if "__pycache__" in name]
    if not any(name.startswith("turnwarden/_core.") and name.endswith(".so") for name in names):
        findings.append("missing: the native module")
    if not any(name.endswith("LICENSE") for name in names):
        findings.append("missing: LICENSE")
    return findings


def run_demo(wheel: Path, examples: Path) -> None:
    """Install the wheel in a fresh environment without Rust on the PATH and run the demo."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "venv"
        venv.create(environment, with_pip=True)
        binaries = environment / "bin"
        path = os.pathsep.join([str(binaries), "/usr/bin", "/bin"])
        clean = {"PATH": path, "HOME": folder, "LANG": "C.UTF-8"}

        def run(*command: str) -> None:
            subprocess.run(command, check=True, cwd=folder, env=clean)

        run(str(binaries / "pip"), "install", "--quiet", "--no-index", str(wheel.resolve()))
        run("turnwarden", "scan", str(examples / "runs"))
        run("turnwarden", "replay", str(examples / "runs" / "looping.jsonl"))
        run(str(binaries / "python"), str(examples / "guarded_loop.py"))


def main() -> int:
    """Check every wheel in the folder given; return the exit code."""
    wheels = sorted(Path(sys.argv[1]).glob("*.whl"))
    if not wheels:
        print(f"no wheel in {sys.argv[1]}", file=sys.stderr)
        return 1
    examples = Path(__file__).resolve().parent.parent / "examples"
    for wheel in wheels:
        findings = check_contents(wheel)
        for finding in findings:
            print(f"{wheel.name}: {finding}", file=sys.stderr)
        if findings:
            return 1
        run_demo(wheel, examples)
        print(f"{wheel.name}: contents and demo are right")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

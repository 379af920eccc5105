"""`turnwarden parse`: one raw reply in, its tool calls, text and reasoning out as JSON."""

from __future__ import annotations

import argparse
import codecs
import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from turnwarden.cli.errors import CommandError

if TYPE_CHECKING:
    from turnwarden import Reply, ResponseParser

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # pyright: ignore[reportPrivateUsage]

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "parse",
        help="parse one raw reply of a model and print what is in it as JSON",
        description="Parses one raw reply of a model: its tool calls, text and reasoning, what "
        "was repaired and what was refused, as JSON.",
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default="-", help="the reply; - or nothing: from stdin"
    )
    parser.add_argument(
        "--tools",
        metavar="FILE",
        help="JSON file with the tool definitions that the model was given",
    )
    pinned = parser.add_mutually_exclusive_group()
    pinned.add_argument(
        "--format",
        metavar="LABEL",
        action="append",
        help="only look for this format (may be given several times)",
    )
    pinned.add_argument(
        "--model",
        metavar="NAME",
        help="only look for the formats of this model, such as Qwen/Qwen3-32B or llama3.1:8b",
    )
    parser.add_argument("--compact", action="store_true", help="print the JSON on one line")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    parser = _response_parser(options)
    text = _read(options.file)
    if not text.strip():
        raise CommandError(f"{options.file}: the reply is empty")
    try:
        reply = parser.parse(text)
    except ValueError as error:
        raise CommandError(f"{options.file}: {error}") from error
    indent = None if options.compact else 2
    print(json.dumps(_described(reply), ensure_ascii=False, indent=indent))
    return 0


def _response_parser(options: argparse.Namespace) -> ResponseParser:
    from turnwarden import ResponseParser

    settings: dict[str, Any] = {}
    if options.tools is not None:
        settings["tools"] = _read_tools(options.tools)
    if options.format is not None:
        settings["formats"] = options.format
    try:
        if options.model is not None:
            return ResponseParser.for_model(options.model, **settings)
        return ResponseParser(**settings)
    except (ValueError, TypeError, LookupError) as error:
        raise CommandError(str(error)) from error


def _described(reply: Reply) -> Mapping[str, Any]:
    return reply.to_dict()


def _read(path: str) -> str:
    try:
        if path == "-":
            if getattr(sys, "stdin", None) is None:
                raise CommandError("-: standard input is closed")
            data = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as file:
                data = file.read()
    except OSError as error:
        raise CommandError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise CommandError(f"{path}: UTF-16 text; save it as UTF-8")
    if b"\0" in data:
        raise CommandError(f"{path}: binary data, no reply of a model")
    return data.decode("utf-8", "replace").removeprefix("\ufeff")


def _read_tools(path: str) -> list[Any]:
    try:
        tools = json.loads(_read(path))
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path}: no valid JSON ({error})") from error
    if isinstance(tools, dict):  # the whole request, or the answer of an MCP server
        tools = cast("dict[str, Any]", tools).get("tools")
    if not isinstance(tools, list):
        raise CommandError(f"{path}: no list of tool definitions")
    return cast("list[Any]", tools)

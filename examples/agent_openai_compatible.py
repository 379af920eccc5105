"""An agent against any OpenAI-compatible endpoint, with streaming. Needs `pip install openai`.

    export OPENAI_BASE_URL=http://localhost:8000/v1   # vLLM, llama.cpp, Ollama, a proxy, ...
    export OPENAI_API_KEY=...                         # anything, where none is needed
    export OPENAI_MODEL=qwen3-8b
    python examples/agent_openai_compatible.py "Which files here are larger than 10 kB?"

The answer is printed as it streams, the calls as they are made. Ctrl-C ends it and shows what was
done until then.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import openai
from turnwarden import TextDelta
from turnwarden.engine import AgentLoop
from turnwarden.engine.events import Event, ReplyProgress, ToolFinished, ToolStarted


def list_files(folder: str = ".") -> dict[str, int]:
    """List the files of a folder with their sizes in bytes.

    Args:
        folder: Relative to the working directory.
    """
    return {entry.name: entry.stat().st_size for entry in Path(folder).iterdir() if entry.is_file()}


def read_file(path: str, start: int = 1, end: int = 200) -> str:
    """Read lines of a text file.

    Args:
        path: Relative to the working directory.
        start: First line, from 1.
        end: Last line.
    """
    lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines[start - 1 : end])


def show(event: Event) -> None:
    """Print what happens."""
    if isinstance(event, ReplyProgress) and isinstance(event.event, TextDelta):
        print(event.event.text, end="", flush=True)
    elif isinstance(event, ToolStarted):
        print(f"\n[{event.tool_name} {dict(event.arguments or {})}]", flush=True)
    elif isinstance(event, ToolFinished) and event.error is not None:
        print(f"[{event.tool_name} {event.status}: {event.error}]", flush=True)


async def main(question: str) -> None:
    model_name = os.environ.get("OPENAI_MODEL", "gpt-4o-mini")
    async with openai.AsyncOpenAI() as client:  # reads OPENAI_BASE_URL and OPENAI_API_KEY

        async def model(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Any:
            return await client.chat.completions.create(
                model=model_name,
                messages=messages,
                tools=tools,
                stream=True,
                stream_options={"include_usage": True},
            )

        loop = AgentLoop(model, [list_files, read_file], on_event=show)
        run = loop.start(question)
        try:
            await run
        finally:
            result = run.result_so_far
            print(f"\n-- {result.status} ({result.reason})\n{result.summary}")


if __name__ == "__main__":
    try:
        asyncio.run(main(" ".join(sys.argv[1:]) or "Which files are in this folder?"))
    except KeyboardInterrupt:
        sys.exit(130)

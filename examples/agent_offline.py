"""An agent with tools, guarded, with no network: the model is scripted.

Run it with `python examples/agent_offline.py`. The first conversation goes well: parallel calls,
a call with bad arguments that the model puts right, an answer. In the second the model goes round
in circles and is stopped. In the third a tool asks the user, and the run goes on with the answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from turnwarden.engine import AgentLoop, RunResult, StandardToolResponse, tool

TABLES = {"Fisk": ["19:00", "21:00"], "Smalhans": ["20:30"]}


async def find_table(city: str, people: int) -> list[str]:
    """Find restaurants with free tables.

    Args:
        city: Where to look.
        people: How many seats are needed.
    """
    await asyncio.sleep(0.01)  # a real tool would ask a server
    return sorted(TABLES) if city == "Oslo" else []


@tool(timeout=2)
async def opening_hours(restaurant: str) -> list[str]:
    """Times at which a restaurant has a free table."""
    await asyncio.sleep(0.01)
    return TABLES[restaurant]


def book(restaurant: str, time: str | None = None) -> StandardToolResponse:
    """Book a table; asks for the time when there is none."""
    if time is None:
        return StandardToolResponse("needs_input", f"When at {restaurant}?")
    return StandardToolResponse("completed", f"Booked at {restaurant}, {time}.")


def calls(*made: tuple[str, dict[str, Any]]) -> str:
    """A reply that makes calls, as many open models write them."""
    return "\n".join(
        f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"
        for name, arguments in made
    )


def scripted(*replies: str) -> Callable[[list[dict[str, Any]]], str]:
    """A model that gives its replies in order, the last one for ever."""
    left = list(replies)
    return lambda messages: left.pop(0) if len(left) > 1 else left[0]


def show(title: str, result: RunResult) -> None:
    print(f"{title}: {result.status} ({result.reason}) after {result.iterations} iterations")
    for call in result.results:
        outcome = call.result if call.error is None else call.error.splitlines()[0]
        print(f"  {call.tool_name}({dict(call.arguments or {})}) {call.status}: {outcome}")
    for question in result.questions:
        print(f"  question: {question.message}")
    if result.text:
        print(f"  answer: {result.text}")


def main() -> None:
    tools = [find_table, opening_hours, book]

    good = scripted(
        calls(("find_table", {"city": "Oslo", "people": "two"})),
        calls(("find_table", {"city": "Oslo", "people": "2"})),
        calls(*(("opening_hours", {"restaurant": name}) for name in ("Fisk", "Smalhans"))),
        "Fisk has a table at 19:00 and at 21:00, Smalhans at 20:30.",
    )
    show("A table", AgentLoop(good, tools).run_sync("A table for two in Oslo, please"))

    stuck = scripted(calls(("find_table", {"city": "Bergen", "people": 2})))
    show("In circles", AgentLoop(stuck, tools).run_sync("A table for two in Bergen, please"))

    asking = AgentLoop(
        scripted(
            calls(("book", {"restaurant": "Fisk"})),
            calls(("book", {"restaurant": "Fisk", "time": "19:00"})),
            "Your table at Fisk is booked for 19:00.",
        ),
        tools,
    )
    paused = asking.run_sync("Book a table at Fisk")
    show("Booking", paused)
    show("Booking, answered", asking.resume_sync(paused, "At seven"))


if __name__ == "__main__":
    main()

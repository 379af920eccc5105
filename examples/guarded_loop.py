"""The guarded agent loop, offline: a scripted model that goes round in circles is stopped.

Run it with `python examples/guarded_loop.py`. In your own program `model` calls your model and
`run_tool` your tools; the loop between the two marks stays as it is.
"""

from collections.abc import Sequence
from typing import Any

from turnwarden import ResponseParser, WorkflowGuard

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "find_table",
            "description": "Free tables of a restaurant",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
                "required": ["city", "people"],
            },
        },
    }
]


def model(messages: Sequence[dict[str, Any]], note: str | None) -> str:
    """A model that asks the same question again and again."""
    for line in (note or "").splitlines():
        print(f"  prompt gets: {line}")
    call = '{"name": "find_table", "arguments": {"city": "Oslo", "people": "2"}}'
    return f"Let me look for a table.\n<tool_call>\n{call}\n</tool_call>"


def run_tool(name: str, arguments: dict[str, Any]) -> str:
    """A restaurant without a free table."""
    print(f"  runs {name}({arguments})")
    return "No free table."


# --- the loop --------------------------------------------------------------------------------
parser = ResponseParser(tools=TOOLS)
guard = WorkflowGuard()
messages: list[dict[str, Any]] = [{"role": "user", "content": "Find a table for two in Oslo"}]

while guard.start_iteration().allow_continue:
    print(f"turn {guard.context.current_iteration}")
    reply = parser.parse(model(messages, note=guard.guidance()))
    messages.append(reply.to_openai_message())
    if not reply.tool_calls:
        break
    verdict = guard.record_turn(reply.tool_calls)
    for call in reply.tool_calls:
        if verdict.allows(call):
            result = run_tool(call.name, call.arguments)
            guard.record_tool_result(result, call_id=call.id)
        else:
            result = verdict.warning_message
            print(f"  {verdict.action}: {call.name} does not run")
        messages.append(call.to_openai_result(result))
# --- to here ---------------------------------------------------------------------------------

print(reply.text or guard.generate_summary())
print(guard.generate_summary())

"""Writes calls as the models of each format do: an independent way from calls to replies."""

# ruff: noqa: E731
# pyright: basic

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

T, B = "\u2581", "\uff5c"


def J(value: Any) -> str:  # noqa: N802
    """Compact in name only: the markup below is unreadable with anything longer."""
    return json.dumps(value, ensure_ascii=False)


def named(fmt):
    return lambda n, a: fmt.replace("NAME", n).replace("ARGS", J(a))


def jsonobj(n, a):
    return J({"name": n, "arguments": a})


def tagval(v):
    return v if isinstance(v, str) else J(v)


def xml(call_o, call_c, arg_o, arg_c, nl=""):
    def w(n, a):
        return (
            call_o.replace("NAME", n)
            + nl
            + "".join(
                arg_o.replace("KEY", k) + nl + tagval(v) + nl + arg_c.replace("KEY", k) + nl
                for k, v in a.items()
            )
            + call_c
        )

    return w


def kv(o, ns, c, sep=""):
    return lambda n, a: (
        o
        + n
        + ns
        + "".join(
            f"<arg_key>{k}</arg_key>{sep}<arg_value>{tagval(v)}</arg_value>{sep}"
            for k, v in a.items()
        )
        + c
    )


def py(v):
    if isinstance(v, bool):
        return str(v)
    if v is None:
        return "None"
    return repr(v) if not isinstance(v, str) else J(v)


pycall = lambda n, a: n + "(" + ", ".join(f"{k}={py(v)}" for k, v in a.items()) + ")"


def gem(q):
    def val(v):
        if isinstance(v, str):
            return q + v + q
        if isinstance(v, dict):
            return "{" + ",".join(f"{k}:{val(x)}" for k, x in v.items()) + "}"
        if isinstance(v, list):
            return "[" + ",".join(map(val, v)) + "]"
        return J(v)

    return lambda n, a: f"call:{n}" + val(a)


# label: (section_open, per-call writer, joiner, section_close, closer-in-string ok?)
WRITERS: dict[str, tuple[str, Callable[[str, dict[str, Any]], str], str | None, str, str]] = {
    "hermes": (
        "",
        lambda n, a: "<tool_call>\n" + jsonobj(n, a) + "\n</tool_call>",
        "\n",
        "",
        "</tool_call>",
    ),
    "granite4": (
        "",
        lambda n, a: "<tool_call>\n" + jsonobj(n, a) + "\n</tool_call>",
        "\n",
        "",
        "</tool_call>",
    ),
    "longcat": (
        "",
        lambda n, a: "<longcat_tool_call>\n" + jsonobj(n, a) + "\n</longcat_tool_call>",
        "\n",
        "",
        "</longcat_tool_call>",
    ),
    "granite": ("<|tool_call|>[", jsonobj, ", ", "]", "<|tool_call|>"),
    "jamba": ("<tool_calls>[", jsonobj, ",\n", "]</tool_calls>", "</tool_calls>"),
    "hunyuan_a13b": ("<tool_calls>[", jsonobj, ", ", "]</tool_calls>", "</tool_calls>"),
    "minimax_m1": ("<tool_calls>\n", jsonobj, "\n", "\n</tool_calls>", "</tool_calls>"),
    "nemotron_deci": ("<TOOLCALL>[", jsonobj, ", ", "]</TOOLCALL>", "</TOOLCALL>"),
    "phi4_mini": ("functools[", jsonobj, ", ", "]", "functools["),
    "apertus": (
        "<|tools_prefix|>[",
        lambda n, a: J({n: a}),
        ", ",
        "]<|tools_suffix|>",
        "<|tools_suffix|>",
    ),
    "cohere_command": (
        "<|START_ACTION|>[",
        lambda n, a: J({"tool_call_id": "0", "tool_name": n, "parameters": a}),
        ", ",
        "]<|END_ACTION|>",
        "<|END_ACTION|>",
    ),
    "internlm": (
        "<|action_start|><|plugin|>",
        lambda n, a: J({"name": n, "parameters": a}),
        None,
        "<|action_end|>",
        "<|action_end|>",
    ),
    "mistral": (
        "[TOOL_CALLS]",
        lambda n, a: n + "[ARGS]" + J(a),
        "[TOOL_CALLS]",
        "",
        "[TOOL_CALLS]",
    ),
    "deepseek_v3": (
        f"<{B}tool{T}calls{T}begin{B}>",
        lambda n, a: (
            f"<{B}tool{T}call{T}begin{B}>function<{B}tool{T}sep{B}>{n}\n```json\n{J(a)}\n```<{B}tool{T}call{T}end{B}>"
        ),
        "\n",
        f"<{B}tool{T}calls{T}end{B}>",
        f"<{B}tool{T}call{T}end{B}>",
    ),
    "deepseek_v31": (
        f"<{B}tool{T}calls{T}begin{B}>",
        lambda n, a: (
            f"<{B}tool{T}call{T}begin{B}>{n}<{B}tool{T}sep{B}>{J(a)}<{B}tool{T}call{T}end{B}>"
        ),
        "",
        f"<{B}tool{T}calls{T}end{B}>",
        f"<{B}tool{T}calls{T}end{B}>",
    ),
    "kimi_k2": (
        "<|tool_calls_section_begin|>",
        lambda n, a: (
            f"<|tool_call_begin|>functions.{n}:0<|tool_call_argument_begin|>{J(a)}<|tool_call_end|>"
        ),
        "",
        "<|tool_calls_section_end|>",
        "<|tool_call_end|>",
    ),
    "plamo": (
        "<|plamo:begin_tool_requests:plamo|>",
        lambda n, a: (
            f"<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>{n}<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:msg|>{J(a)}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>"
        ),
        "",
        "<|plamo:end_tool_requests:plamo|>",
        "<|plamo:end_tool_request:plamo|>",
    ),
    "qwen3_coder": (
        "",
        lambda n, a: (
            "<tool_call>\n"
            + xml("<function=NAME>", "</function>", "<parameter=KEY>", "</parameter>", "\n")(n, a)
            + "\n</tool_call>"
        ),
        "\n",
        "",
        "</tool_call>",
    ),
    "seed_oss": (
        "<seed:tool_call>\n",
        xml("<function=NAME>", "</function>", "<parameter=KEY>", "</parameter>"),
        "\n",
        "\n</seed:tool_call>",
        "</seed:tool_call>",
    ),
    "deepseek_v32": (
        f"<{B}DSML{B}function_calls>\n",
        xml(
            f'<{B}DSML{B}invoke name="NAME">',
            f"</{B}DSML{B}invoke>",
            f'<{B}DSML{B}parameter name="KEY">',
            f"</{B}DSML{B}parameter>",
        ),
        "\n",
        f"\n</{B}DSML{B}function_calls>",
        f"</{B}DSML{B}function_calls>",
    ),
    "minimax_m2": (
        "<minimax:tool_call>\n",
        xml('<invoke name="NAME">', "</invoke>", '<parameter name="KEY">', "</parameter>"),
        "\n",
        "\n</minimax:tool_call>",
        "</minimax:tool_call>",
    ),
    "step3": (
        f"<{B}tool_calls_begin{B}>",
        lambda n, a: (
            f"<{B}tool_call_begin{B}>function<{B}tool_sep{B}>"
            + xml(
                '<steptml:invoke name="NAME">',
                "</steptml:invoke>",
                '<steptml:parameter name="KEY">',
                "</steptml:parameter>",
            )(n, a)
            + f"<{B}tool_call_end{B}>"
        ),
        "",
        f"<{B}tool_calls_end{B}>",
        f"<{B}tool_calls_end{B}>",
    ),
    "minicpm5": (
        "",
        xml('<function name="NAME">', "</function>", '<param name="KEY"><![CDATA[', "]]></param>"),
        "\n",
        "",
        "</function>",
    ),
    "anthropic_xml": (
        "<function_calls>\n",
        xml('<invoke name="NAME">', "</invoke>", '<parameter name="KEY">', "</parameter>"),
        "\n",
        "\n</function_calls>",
        "</function_calls>",
    ),
    "muse": (
        "<atem:function_calls>\n",
        xml(
            '<atem:invoke name="NAME">',
            "</atem:invoke>",
            '<atem:parameter name="KEY">',
            "</atem:parameter>",
        ),
        "\n",
        "\n</atem:function_calls>",
        "</atem:function_calls>",
    ),
    "dots": (
        "<dots_function_call>\n",
        xml('<invoke name="NAME">', "</invoke>", '<parameter name="KEY">', "</parameter>"),
        "\n",
        "\n</dots_function_call>",
        "</dots_function_call>",
    ),
    "minimax_m3": (
        "]<]minimax[>[<tool_call>\n",
        xml(
            ']<]minimax[>[<invoke name="NAME">',
            "]<]minimax[>[</invoke>",
            "]<]minimax[>[<KEY>",
            "]<]minimax[>[</KEY>",
        ),
        "\n",
        "\n]<]minimax[>[</tool_call>",
        "</tool_call>",
    ),
    "kimi_k3": (
        "<|open|>tools<|sep|>",
        xml(
            '<|open|>call tool="NAME" index="1"<|sep|>',
            "<|close|>call<|sep|>",
            '<|open|>argument key="KEY"<|sep|>',
            "<|close|>argument<|sep|>",
        ),
        "",
        "<|close|>tools<|sep|>",
        "<|close|>tools<|sep|>",
    ),
    "glm45": ("", kv("<tool_call>", "\n", "</tool_call>", "\n"), "\n", "", "</tool_call>"),
    "glm47": ("", kv("<tool_call>", "", "</tool_call>"), "", "", "</tool_call>"),
    "hy_v3": (
        "<tool_calls>",
        kv("<tool_call>", "<tool_sep>", "</tool_call>"),
        "",
        "</tool_calls>",
        "</tool_calls>",
    ),
    "ifm": (
        "<ifm|tool_calls>",
        lambda n, a: (
            f"<ifm|tool_call>{n}"
            + "".join(
                f"<ifm|arg_key>{k}</ifm|arg_key><ifm|arg_value>{tagval(v)}</ifm|arg_value>"
                for k, v in a.items()
            )
            + "</ifm|tool_call>"
        ),
        "",
        "</ifm|tool_calls>",
        "</ifm|tool_calls>",
    ),
    "iquest": (
        "",
        kv("<iquest_tool_call>", "", "</iquest_tool_call>"),
        "",
        "",
        "</iquest_tool_call>",
    ),
    "pythonic/lfm2": (
        "<|tool_call_start|>[",
        pycall,
        ", ",
        "]<|tool_call_end|>",
        "<|tool_call_end|>",
    ),
    "pythonic/olmo3": (
        "<function_calls>\n",
        pycall,
        "\n",
        "\n</function_calls>",
        "</function_calls>",
    ),
    "gemma4": (
        "",
        lambda n, a: "<|tool_call>" + gem('<|"|>')(n, a) + "<tool_call|>",
        "",
        "",
        "<tool_call|>",
    ),
    "functiongemma": (
        "",
        lambda n, a: "<start_function_call>" + gem("<escape>")(n, a) + "<end_function_call>",
        "",
        "",
        "<end_function_call>",
    ),
}


def written(label: str, calls: list[tuple[str, dict[str, Any]]]) -> str:
    """A reply of these calls, in the format of that label."""
    before, write, between, after, _ = WRITERS[label]
    return (
        before + (between or "").join(write(name, arguments) for name, arguments in calls) + after
    )

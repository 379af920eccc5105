"""Texts that repeat themselves: the detector, and parsers that stop because of it."""

import asyncio
import json
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from turnwarden import ResponseParser, TextLoopDetector, WrongTypeError
from turnwarden.parsing import FaultKind, MessageStream, ParseFault, ReplyFinished

VECTORS = Path(__file__).parent / "vectors/text_loops.jsonl"
ROWS = [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()]
SENTENCE = "I will look at the file again. "
CALL = '<tool_call>\n{"name": "ping", "arguments": {"host": "a"}}\n</tool_call>\n'
STOPPING = ResponseParser(stop_on_text_loop=True)


def text_of(row: dict[str, Any]) -> str:
    """The text of a row: its parts, each as often as it says, with the count for `{n}`."""
    return "".join(
        part["text"].replace("{n}", str(n)) if "times" in part else part["text"]
        for part in row["parts"]
        for n in range(part.get("times", 1))
    )


def cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
@pytest.mark.parametrize("size", [1, 7, 10**9])
def test_loops_are_found_where_they_began_and_healthy_texts_are_left_alone(
    row: dict[str, Any], size: int
) -> None:
    detector = TextLoopDetector()
    for chunk in cut(text_of(row), size):
        detector.feed(chunk)
    expect = row["expect"]
    assert detector.loop_detected == expect["loop"], row["why"]
    if expect.get("kind"):
        assert detector.kind == expect["kind"]
    if expect.get("start") is not None:
        assert detector.start is not None
        assert abs(detector.start - expect["start"]) <= 2


@pytest.mark.parametrize(
    "row", [row for row in ROWS if not row["expect"]["loop"]], ids=lambda row: row["id"]
)
def test_parsers_do_not_stop_at_healthy_texts(row: dict[str, Any]) -> None:
    text = text_of(row)
    assert STOPPING.parse(text) == ResponseParser().parse(text)


def test_a_detector_can_be_used_again() -> None:
    detector = TextLoopDetector()
    assert repr(detector) == "<TextLoopDetector after 0 bytes>"
    assert detector.feed("ha" * 200)
    assert detector.feed("and on")
    assert repr(detector) == "<TextLoopDetector: cycle repeated from byte 0>"
    detector.reset()
    assert not detector.feed("ha")
    assert (detector.kind, detector.start, detector.period) == (None, None, None)
    assert detector.position == 2


def test_offsets_are_bytes() -> None:
    detector = TextLoopDetector()
    detector.feed("Größe: " + "哈" * 200)
    assert detector.start == len("Größe: ".encode())
    assert detector.period == 3


def test_lone_surrogates_read_as_replacement_characters() -> None:
    detector = TextLoopDetector()
    assert not detector.feed("a\ud800b\ud83d\ude00")
    assert detector.position == len("a\ufffdb😀".encode())
    assert detector.feed("\udfff" * 300)
    assert (detector.start, detector.period) == (9, 3)


@pytest.mark.parametrize("wrong", [None, 5, b"text", ["text"]])
def test_what_is_no_text_is_refused_by_its_type(wrong: Any) -> None:
    detector = TextLoopDetector()
    with pytest.raises(WrongTypeError, match="a delta must be a str, not"):
        detector.feed(wrong)
    assert detector.position == 0


def test_threads_may_share_a_detector() -> None:
    detector = TextLoopDetector()
    text = " ".join(map(str, range(30_000)))
    threads = [threading.Thread(target=detector.feed, args=(text,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert detector.position == 4 * len(text)


def test_what_came_before_the_repetition_is_kept() -> None:
    reply = STOPPING.parse("Hello.\n" + CALL + SENTENCE * 400)
    assert [call.name for call in reply.tool_calls] == ["ping"]
    assert reply.text.startswith("Hello.")
    (fault,) = reply.faults
    assert fault.kind is FaultKind.TEXT_LOOP
    assert abs(fault.offset - len("Hello.\n" + CALL)) <= 1
    assert f"from byte {fault.offset} on" in fault.message
    assert len(ResponseParser().parse("Hello.\n" + CALL + SENTENCE * 400).text) > 10_000


def test_an_iterator_stops_listening_to_the_model() -> None:
    given: list[str] = []

    def model() -> Iterator[str]:
        while True:
            given.append(SENTENCE)
            yield SENTENCE

    events = list(STOPPING.iter(model()))
    assert len(given) < 20
    fault, finished = events[-2:]
    assert isinstance(fault, ParseFault)
    assert fault.kind is FaultKind.TEXT_LOOP
    assert isinstance(finished, ReplyFinished)
    assert finished.reply.text.startswith(SENTENCE)


def test_an_asynchronous_iterator_stops_listening_too() -> None:
    given: list[str] = []

    async def kinds() -> list[str]:
        async def model():
            while True:
                given.append(SENTENCE)
                yield SENTENCE

        return [event.type async for event in STOPPING.aiter(model())]

    assert asyncio.run(kinds())[-2:] == ["parse_fault", "reply_finished"]
    assert len(given) < 20


def test_a_stopped_stream_ignores_what_still_comes() -> None:
    stream = STOPPING.stream()
    stream.feed("ny" * 500)
    assert stream.stopped
    assert not stream.finished
    assert stream.feed(CALL) == []
    (finished,) = stream.finish()
    assert isinstance(finished, ReplyFinished)
    assert stream.stopped
    assert stream.finished
    assert stream.reply.tool_calls == ()
    assert not ResponseParser().stream().stopped


def test_rows_in_arguments_are_data() -> None:
    rows = "the same row again\n" * 200
    call = json.dumps({"name": "write", "arguments": {"text": rows}})
    reply = STOPPING.parse(f"<tool_call>\n{call}\n</tool_call>")
    assert reply.faults == ()
    assert reply.tool_calls[0].arguments == {"text": rows}


def test_the_text_of_a_native_message_is_watched() -> None:
    stream = MessageStream(STOPPING)
    for _ in range(100):
        stream.feed({"choices": [{"index": 0, "delta": {"content": SENTENCE}}]})
    stream.finish()
    assert [fault.kind for fault in stream.reply.faults] == [FaultKind.TEXT_LOOP]
    assert len(stream.reply.text) < 400


def test_the_option_is_part_of_a_parser() -> None:
    assert STOPPING.stop_on_text_loop
    assert not ResponseParser().stop_on_text_loop
    assert ResponseParser() != STOPPING
    assert pickle.loads(pickle.dumps(STOPPING)) == STOPPING
    assert repr(STOPPING) == "ResponseParser(stop_on_text_loop=True)"
    assert ResponseParser.for_model("hermes3:8b", stop_on_text_loop=True).stop_on_text_loop


NUMBERED = [
    "I look at line {} of it again. ",
    "### Try {}\n\nIt fails with {} once more, so be it.\n\n",
    "第{}次还是不行，我再看一次。\n",
]
REPLIES = st.lists(
    st.one_of(
        st.sampled_from(["Hello. ", "<think>", "</think>", "\n\n", "```\n", CALL, '{"content": "']),
        st.sampled_from(
            ["## Ferry\n\n", "- a boat\n", "1. ", "| a | b |\n", "    x = 1\n", "यह है। "]
        ),
        st.tuples(st.sampled_from(NUMBERED), st.integers(1, 9), st.integers(1, 60)).map(
            lambda counted: "".join(
                counted[0].replace("{}", str(counted[1] * n)) for n in range(counted[2])
            )
        ),
        st.tuples(
            st.sampled_from([SENTENCE, "ny", "好的。我再看一次。", "x = 1\n", CALL]),
            st.integers(1, 60),
        ).map(lambda repeated: repeated[0] * repeated[1]),
    ),
    max_size=8,
).map("".join)


@given(REPLIES, st.integers(1, 50))
def test_any_cut_into_chunks_gives_the_same_reply(text: str, size: int) -> None:
    stream = STOPPING.stream()
    for chunk in cut(text, size):
        stream.feed(chunk)
    stream.finish()
    whole = STOPPING.parse(text)
    assert stream.reply == whole
    assert stream.stopped == any(fault.kind is FaultKind.TEXT_LOOP for fault in whole.faults)

"""What it costs to watch a streaming text for repetition, in nanoseconds a byte."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable

from turnwarden import ResponseParser, TextLoopDetector

from benches.compare import measure

SIZE = 1 << 18
ENDINGS = ["a", "en", "in", "or", "ust", "ile"]
WORDS = [start + end for start in "bdfgklmnprstv" for end in ENDINGS]
CHUNK = 16


def prose(random_: random.Random) -> str:
    """Sentences in paragraphs, no two alike."""
    text = ""
    while len(text) < SIZE:
        words = random_.choices(WORDS, k=random_.randint(5, 20))
        text += " ".join(words).capitalize() + random_.choice([". ", ". ", "? ", ".\n\n"])
    return text


def chinese(random_: random.Random) -> str:
    """The same in characters of three bytes."""
    letters = [chr(0x4E00 + n) for n in range(800)]
    text = ""
    while len(text) * 3 < SIZE:
        text += "".join(random_.choices(letters, k=random_.randint(5, 30))) + "。"
    return text


def texts() -> dict[str, str]:
    """Texts that are no loop."""
    random_ = random.Random(1)
    rows = (f"- item {n}: set the flag to true in the file\n" for n in range(SIZE // 45))
    lines = (f"    total += {n} * count_{n % 7}[{n}]\n" for n in range(SIZE // 35))
    return {
        "prose": prose(random_),
        "Chinese prose": chinese(random_),
        "a list of similar items": "".join(rows),
        "code in a fence": "```python\n" + "".join(lines) + "```\n",
    }


def ours(text: str) -> Callable[[], object]:
    return lambda: TextLoopDetector().feed(text)


def ours_in_chunks(text: str) -> Callable[[], object]:
    chunks = [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)]

    def watch() -> None:
        feed = TextLoopDetector().feed
        for chunk in chunks:
            feed(chunk)

    return watch


def chunk_hashes(text: str) -> Callable[[], object]:
    """The usual way, stated anew: hash every window of 50 characters, and call it a loop when
    ten equal ones stand close together."""

    def watch() -> bool:
        seen: dict[bytes, list[int]] = {}
        for at in range(len(text) - 50):
            window = hashlib.sha256(text[at : at + 50].encode()).digest()
            places = seen.setdefault(window, [])
            places.append(at)
            if len(places) >= 10 and places[-1] - places[-10] <= 9 * 75:
                return True
        return False

    return watch


def parsing(text: str, *, stops: bool) -> Callable[[], object]:
    parser = ResponseParser(stop_on_text_loop=stops)
    return lambda: parser.parse(text)


def main(effort: measure.Effort) -> None:
    """Prints the table."""
    print("| text | ours | in chunks of 16 | hashes of 50 characters | parse | parse and watch |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, text in texts().items():
        size = len(text.encode())
        watched = TextLoopDetector()
        assert not watched.feed(text), name
        seconds = measure.measure(
            {
                "ours": ours(text),
                "chunks": ours_in_chunks(text),
                "hashes": chunk_hashes(text),
                "parse": parsing(text, stops=False),
                "watched": parsing(text, stops=True),
            },
            effort,
        )
        cells = " | ".join(f"{value / size * 1e9:.2f}" for value in seconds.values())
        print(f"| {name}, {size >> 10} KB | {cells} |")
    print("\nNanoseconds a byte.")

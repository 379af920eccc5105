"""The examples run: one with no network, one against a server that speaks HTTP and SSE."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from message_pairing import check_history

EXAMPLES = Path(__file__).parent.parent / "examples"


def run_example(
    name: str, *arguments: str, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    # Warnings of other packages, such as an SDK's, are theirs.
    return subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-W", "error::ResourceWarning",
         str(EXAMPLES / name), *arguments],
        cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip


def test_offline_example_shows_an_answer_a_stop_and_a_pause() -> None:
    ran = run_example("agent_offline.py")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert "A table: completed (answered) after 4 iterations" in ran.stdout
    assert "In circles: stopped (loop.exact)" in ran.stdout
    assert "question: When at Fisk?" in ran.stdout
    assert "Your table at Fisk is booked for 19:00." in ran.stdout


class Endpoint(ThreadingHTTPServer):
    """An OpenAI-compatible server that makes two calls, one of them bad, then answers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def reply(self, messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        answers = [message["content"] for message in messages if message["role"] == "tool"]
        if not answers:
            yield {"role": "assistant", "content": "Let me look."}
            for index, arguments in enumerate(['{"folder": "."}', '{"place": "."}']):
                function = {"name": "list_files", "arguments": ""}
                head = {"index": index, "id": f"call_{index}", "type": "function"}
                yield {"tool_calls": [{**head, "function": function}]}
                for letter in arguments:
                    piece = {"index": index, "function": {"arguments": letter}}
                    yield {"tool_calls": [piece]}
            return
        yield {"role": "assistant", "content": ""}
        for word in f"There is {next(iter(json.loads(answers[0])))}.".split(" "):
            yield {"content": f"{word} "}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Endpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append({"path": self.path, **body})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        head = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m"}
        end = "stop"
        for delta in self.server.reply(body["messages"]):
            end = "tool_calls" if "tool_calls" in delta else end
            self.send({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        self.send({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": end}]})
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        self.send({**head, "choices": [], "usage": usage})
        self.write(b"data: [DONE]\n\n")
        self.write(b"")

    def send(self, chunk: dict[str, Any]) -> None:
        self.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")

    def write(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_openai_compatible_example_speaks_to_a_server(endpoint: Endpoint, tmp_path: Path) -> None:
    pytest.importorskip("openai")
    (tmp_path / "report.txt").write_text("x" * 100)
    ran = run_example(
        "agent_openai_compatible.py", "Which files are here?", cwd=tmp_path,
        OPENAI_BASE_URL=endpoint.url, OPENAI_API_KEY="none", OPENAI_MODEL="m",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert "Let me look." in ran.stdout
    assert "[list_files {'folder': '.'}]" in ran.stdout
    assert "[list_files refused: " in ran.stdout
    assert "There is report.txt." in ran.stdout
    assert "-- completed (answered)" in ran.stdout

    first, second = endpoint.requests
    assert first["path"] == "/v1/chat/completions"
    assert first["stream"] is True
    assert [tool["function"]["name"] for tool in first["tools"]] == ["list_files", "read_file"]
    assert first["messages"] == [{"role": "user", "content": "Which files are here?"}]
    check_history(second["messages"])
    good, bad = [message for message in second["messages"] if message["role"] == "tool"]
    assert (good["tool_call_id"], json.loads(good["content"])) == ("call_0", {"report.txt": 100})
    assert bad["tool_call_id"] == "call_1"
    assert bad["content"].startswith("Error: ")

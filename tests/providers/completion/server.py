"""A loopback code completion server, at all paths that such servers have.

They are `/infill`, `/v1/completions`, `/api/generate`, `/v1/fim/completions` and `/beta/completions`.

`async with FillServer(["text"]) as server: … server.address … server.requests`. The script provides one text per
request; an `Answer` in it is sent unchanged, and when it is used up, every reply is empty. Requests are checked as the
real servers check them (`rules.py`) before an entry of the script is used. Only the paid services require `key`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.providers.completion import rules
from tests.providers.loopback.answers import Answer, failure, json_answer
from tests.providers.loopback.server import LoopbackServer, Received
from tests.providers.loopback.thread import LoopbackThread

PAID = ("/v1/fim/completions", "/beta/completions")


class FillServer(LoopbackServer):
    """The server; see the module docstring. `fills_in`: whether the loaded model has fill-in-the-middle tokens.

    `window` is the context window of llama.cpp in tokens, 0 for unlimited; `runs` is its description at `/props`.
    """

    def __init__(
        self,
        script: Iterable[str | Answer] = (),
        *,
        key: str = "sk-test",
        models: tuple[str, ...] = ("qwen2.5-coder", "codestral-latest", "deepseek-chat", "granite"),
        fills_in: bool = True,
        finish: str = "stop",
        window: int = 0,
        runs: str = "",
    ) -> None:
        super().__init__()
        self.script = list(script)
        self._key, self._models, self._fills_in, self._finish = key, models, fills_in, finish
        self._window, self._runs = window, runs

    @property
    def address(self) -> str:
        """Return the server's URL without a path."""
        return f"http://127.0.0.1:{self.port}"

    def answer(self, request: Received) -> Answer:
        """Return the refusal of the request, or the next text."""
        if request.path in PAID and request.headers.get("authorization") != f"Bearer {self._key}":
            return self._unauthorized(request.path)
        if request.path == "/props" and self._runs:
            return json_answer({"default_generation_settings": {"n_ctx": 4096}, "model_path": self._runs})
        if request.method != "POST":
            return failure(405, "Method not allowed")
        body: dict[str, Any] = request.json
        match request.path:
            case "/infill":
                refusal = rules.refuse_llamacpp(body, fills_in=self._fills_in, window=self._window)
                form = self._llamacpp
            case "/v1/completions":
                refusal, form = rules.refuse_completions(body, self._models), self._completions
            case "/api/generate":
                refusal, form = rules.refuse_ollama(body, self._models, fills_in=self._fills_in), self._ollama
            case "/v1/fim/completions":
                refusal, form = rules.refuse_mistral(body, self._models), self._mistral
            case "/beta/completions":
                refusal, form = rules.refuse_deepseek(body, self._models), self._completions
            case path:
                return json_answer({"detail": "Not Found", "path": path}, status=404)
        if refusal is not None:
            return refusal
        wanted = self.script.pop(0) if self.script else ""
        return wanted if isinstance(wanted, Answer) else json_answer(form(wanted, body))

    def control(self, request: Received) -> Any:
        """Add texts to the script."""
        if request.path == "/control/script":
            self.script.extend(request.json)
            return len(self.script)
        return None

    def _unauthorized(self, path: str) -> Answer:
        if path == PAID[0]:
            return json_answer({"detail": "Unauthorized"}, status=401)
        return failure(401, "Authentication Fails (no such user)", type="authentication_error")

    def _llamacpp(self, text: str, body: dict[str, Any]) -> dict[str, Any]:
        stop = {"stop": "eos", "length": "limit"}[self._finish]
        return {
            "index": 0, "content": text, "tokens": [], "id_slot": 0, "stop": True,
            "model": self._runs or "gpt-3.5-turbo", "tokens_predicted": 7, "tokens_evaluated": 40,
            "generation_settings": {"n_predict": body.get("n_predict")},
            "prompt": "", "has_new_line": "\n" in text, "truncated": False, "stop_type": stop, "stopping_word": "",
            "tokens_cached": 46, "timings": {"prompt_n": 40, "predicted_n": 7},
        }  # fmt: skip

    def _completions(self, text: str, body: dict[str, Any]) -> dict[str, Any]:
        choice = {"text": text, "index": 0, "logprobs": None, "finish_reason": self._finish}
        usage = {"prompt_tokens": 40, "completion_tokens": 7, "total_tokens": 47}
        return {
            "id": "cmpl-1", "object": "text_completion", "created": 1, "model": body["model"], "choices": [choice],
            "usage": usage,
        }  # fmt: skip

    def _ollama(self, text: str, body: dict[str, Any]) -> dict[str, Any]:
        return {
            "model": body["model"], "created_at": "2026-11-22T20:47:51.147561Z", "response": text, "done": True,
            "done_reason": self._finish, "total_duration": 1, "load_duration": 1, "prompt_eval_count": 17,
            "prompt_eval_duration": 1, "eval_count": 7, "eval_duration": 1,
        }  # fmt: skip

    def _mistral(self, text: str, body: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "tool_calls": None, "content": text, "prefix": False}
        choice = {"index": 0, "message": message, "finish_reason": self._finish}
        usage = {"prompt_tokens": 8, "completion_tokens": 7, "total_tokens": 15}
        return {
            "id": "447e3e0d", "object": "chat.completion", "model": body["model"], "created": 1, "usage": usage,
            "choices": [choice],
        }  # fmt: skip


class FillServerThread(LoopbackThread[FillServer]):
    """The server in a thread of its own, for tests that are not async: `with FillServerThread([…]) as server:`."""

    def __init__(self, script: Iterable[str | Answer] = (), **options: Any) -> None:
        texts = list(script)
        super().__init__(lambda: FillServer(texts, **options))

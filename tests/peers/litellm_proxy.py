"""LiteLLM's proxy as a gateway in front of aimock: a common setup between tools and providers.

It speaks all three wire formats to us and Chat Completions (Responses for `/v1/responses`) to aimock. For `messages` it
performs Anthropic's `compact_20260112` itself: a request over the trigger is summarised by the model `summariser`, the
stream begins with a `compaction` block, `usage.iterations` reports both passes, and a block that is sent back replaces
the text before it with a sentence in the system prompt.

Differences from the real providers (1.106.0, seen on the wire and in its `context_management/editors/compact.py`):

- The compaction block has neither `encrypted_content` nor `signature`; it begins with `content: ""`, not null. Whether
  the summary was put into `<summary>` tags decides if there is a block at all.
- After a compaction only the newest user question goes to the model: of a tool loop its calls and results are lost.
- `pause_after_compaction` is ignored (with a warning in `applied_edits`). The on-demand form (`compaction`) is too: the
  chat is answered instead. `applied_edits` lists the compaction, also one that failed (`error`).
- `message_start` says 0 tokens; the prompt is only reported by `message_delta`, which has no cache figures.
- A thinking block has no signature. Tool ids are `call_…`.
- Errors are wrapped: `litellm.RateLimitError: RateLimitError: … - {"error": …}`, and a 429 of Chat Completions has the
  type `throttling_error` and the code `"429"`; `retry-after` is not passed on.
- A stream that breaks off there ends cleanly, after an error event (lesson 39); Chat Completions without `[DONE]`.
  Bytes not read when the connection broke are lost. An answer it cannot read becomes a complete reply without content.
- Without a database a wrong key is 400 "No connected db.", not 401.
- `/v1/messages` for `openai/…` models would go to the Responses API, where the trigger becomes OpenAI's own
  compaction, which aimock does not have; so the upstream of `messages` is `hosted_vllm/…`.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path

from tests.peers.server_process import ServerProcess, answers


class LiteLLMProxy:
    """The running gateway; `url` without `/v1`. Its models: `chat` (and Responses), `messages`, `summariser`."""

    def __init__(self, program: Path, folder: Path, upstream: str, key: str) -> None:
        """Start the gateway in front of `upstream`.

        Its log is written to `folder`; requests to it must carry `key`, which it also sends upstream.
        """
        self.key = key
        config = folder / "config.yaml"
        config.write_text(json.dumps(_configuration(upstream, key)), encoding="utf-8")  # JSON is YAML
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}"
        argv = [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
        # Without the first it asks the network for prices and does not start when there is none.
        env = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False", "NO_COLOR": "1"}
        self.process = ServerProcess("LiteLLM", argv, env=env, log=folder / "litellm.log")
        self.process.wait_until(lambda: answers(f"{self.url}/health/liveliness"))


def _configuration(upstream: str, key: str) -> dict[str, object]:
    provider = {"chat": "openai", "messages": "hosted_vllm", "summariser": "hosted_vllm"}
    return {
        "model_list": [
            {
                "model_name": name,
                "litellm_params": {"model": f"{kind}/{name}", "api_base": f"{upstream}/v1", "api_key": key},
            }
            for name, kind in provider.items()
        ],
        "general_settings": {"master_key": key, "context_management_summary_model": "summariser"},
        # Our own retries are what is tested, and an error in one test must not close the model for the next.
        "litellm_settings": {"num_retries": 0, "telemetry": False},
        "router_settings": {"disable_cooldowns": True, "num_retries": 0},
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

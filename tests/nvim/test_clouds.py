"""Clouds in a real Neovim: a message is sent through the official client to a server that checks its signature."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness import Nvim
from real_chat import COUNT_TURNS, RealChat, init_lua
from tests.providers.anthropic.answers import reply
from tests.providers.clouds import bedrock
from tests.providers.clouds.bedrock import BedrockServer
from tests.providers.loopback.thread import LoopbackThread

AWS = {
    "AWS_ACCESS_KEY_ID": bedrock.KEY_ID,
    "AWS_SECRET_ACCESS_KEY": bedrock.SECRET,
    "AWS_EC2_METADATA_DISABLED": "true",
}


def options(url: str) -> dict[str, object]:
    """Return options with the adapter `bedrock` at the test server, used for new chats."""
    entry = {
        "url": url,
        "schema": {"model": {"default": bedrock.MODEL}},
        "opts": {"region": bedrock.REGION, "max_retries": 0},
    }
    return {"adapters": {"http": {"bedrock": entry}}, "interactions": {"chat": {"adapter": "bedrock"}}}


def test_a_message_to_bedrock_is_signed_and_answered(nvim_factory: Callable[..., Nvim], tmp_path: Path) -> None:
    """The user's credentials from the environment are used; the header names the model and adapter."""
    with LoopbackThread(lambda: BedrockServer([reply("Hello from Bedrock")]), "anthropic.messages") as server:
        nvim = nvim_factory(init=init_lua("http://127.0.0.1:9", options(server.url)) + COUNT_TURNS, env=AWS)
        chat = RealChat(nvim, tmp_path)
        chat.open()
        chat.say("Hi")
        assert "Hello from Bedrock" in chat.text()
        assert f"bedrock · {bedrock.MODEL}" in chat.text()
        assert not server.unsigned
        assert server.requests[0].headers["authorization"].startswith("AWS4-HMAC-SHA256 ")
    assert bedrock.SECRET not in "".join(path.read_text(errors="replace") for path in tmp_path.rglob("*.log"))


def test_a_message_without_credentials_returns_to_the_input(nvim_factory: Callable[..., Nvim], tmp_path: Path) -> None:
    """One sentence names the remedy; nothing was sent."""
    with LoopbackThread(BedrockServer, "anthropic.messages") as server:
        env = {"AWS_EC2_METADATA_DISABLED": "true", "HOME": str(tmp_path / "home")}
        nvim = nvim_factory(init=init_lua("http://127.0.0.1:9", options(server.url)) + COUNT_TURNS, env=env)
        chat = RealChat(nvim, tmp_path)
        chat.open()
        chat.say("Hi")
        assert "no usable AWS credentials" in " ".join(chat.text().split())
        assert not server.requests

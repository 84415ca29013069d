"""Bedrock, Vertex AI and Azure: their servers verify signatures, and the events match those of the provider itself."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import logging
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from codecompanion import errors
from codecompanion.adapters.base import AdapterSettings, ChatRequest, Finished, ReasoningDone
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.registry import make_wire
from codecompanion.formats.byte_limits import ASIDE_BYTES
from codecompanion.model.messages import Message
from tests.adapters.anthropic_chat import ClaudeChat
from tests.adapters.conftest import Outcome, collect, told, user
from tests.providers.anthropic.answers import Call, Reply, Text, Thinking, error_event, failure, rate_limited, reply
from tests.providers.anthropic.models import SONNET
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.chat.answers import reply as chat_reply
from tests.providers.clouds import azure, bedrock, entra, vertex
from tests.providers.clouds.azure import AzureServer, FoundryServer
from tests.providers.clouds.bedrock import BedrockServer, raw_frame
from tests.providers.clouds.entra import EntraServer
from tests.providers.clouds.frames import exception, frame
from tests.providers.clouds.vertex import VertexServer
from tests.providers.loopback.answers import END

BEDROCK = {"client": "bedrock", "region": bedrock.REGION, "model": bedrock.MODEL}
MANTLE = {**BEDROCK, "client": "bedrock_mantle"}
VERTEX = {"client": "vertex", "region": vertex.REGION, "project_id": vertex.PROJECT, "model": vertex.MODEL}
AZURE = {"client": "azure", "model": "test-model", "kind": "openai_compatible"}
FOUNDRY = {"client": "azure", "model": SONNET.id}
THROTTLED = "Too many tokens, please wait before trying again."
TOOL_LOOP = [
    Reply(
        (Thinking("let me see"), Text("I look."), Call("now", "{}", "call_1"), Call("now", '{"z": "Łódź"}', "call_2"))
    ),
    Reply((Thinking("now I know"), Text("It is noon. 🎉"))),
]


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide everything but the test's own credentials: no profile, metadata server or login of this machine."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_BEARER_TOKEN_BEDROCK", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", bedrock.KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", bedrock.SECRET)


@pytest.fixture(autouse=True, scope="module")
def libraries() -> None:
    """Import the clients' dependencies, and exclude them from garbage collection after each test."""
    for name in ("anthropic.lib.aws._auth", "openai", "boto3", "google.auth.transport.requests", "azure.identity"):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def fresh_sessions() -> Iterator[None]:
    """Reset boto3's sessions, which the client keeps for the life of the process, and Google's connections."""
    from anthropic.lib.aws import _auth

    _auth._get_session.cache_clear()
    yield
    gc.collect()


def make(
    url: str, waits: list[float] | None = None, environ: dict[str, str] | None = None, **fields: Any
) -> HttpAdapter:
    """Return an adapter without waits and without a key."""

    async def no_wait(seconds: float) -> None:
        (waits if waits is not None else []).append(seconds)

    settings = AdapterSettings(**{"name": "cloud", "kind": "anthropic", "transport": "sdk", "base_url": url, **fields})
    wire = make_wire(settings, lambda _: b"")
    return HttpAdapter(settings, wire, read_key=lambda _: "", environ=environ, sleep=no_wait, random=lambda: 0.5)


@asynccontextmanager
async def chat_on(server: AnthropicServer, url: str = "", **fields: Any) -> AsyncIterator[ClaudeChat]:
    """Run a chat with a cloud provider."""
    adapter = make(url or server.url, **fields)
    try:
        yield ClaudeChat(adapter, server, model=fields["model"])
    finally:
        await adapter.aclose()


async def ask(adapter: HttpAdapter, **fields: Any) -> Outcome:
    """Send one request and close the connection."""
    request = ChatRequest(**{"messages": (user(),), "model": adapter.default_model, "max_output_tokens": 64, **fields})
    outcome = await collect(adapter, request)
    await adapter.aclose()
    return outcome


def without_made_up(outcome: Outcome) -> list[str]:
    """Return the events without values that a server makes up: signatures, and the model name they cover."""
    events = [str(event) for event in told(outcome) if not isinstance(event, ReasoningDone | Finished)]
    last = outcome.finished
    return [*events, str((last.stop, last.tool_calls, last.usage))]


async def tool_loop(chat: ClaudeChat) -> list[str]:
    """Hold a conversation with thinking and tools; return all its events."""
    first = await chat.ask("What time is it?")
    second = await chat.ask()
    assert not chat.server.refusals
    return without_made_up(first) + without_made_up(second)


async def test_bedrock_and_vertex_yield_the_providers_own_events(aws: None, tmp_path: Path, monkeypatch: Any) -> None:
    """One scripted conversation at four endpoints yields the same events, with blocks sent back in place each time."""
    said_by = {}
    async with AnthropicServer(TOOL_LOOP) as server:
        adapter_fields = {
            "transport": "httpx2",
            "model": server._rules.models[0].id,
            "headers": {"x-api-key": "sk-test"},
        }
        async with chat_on(server, **adapter_fields) as chat:
            said_by["anthropic"] = await tool_loop(chat)
    async with BedrockServer(TOOL_LOOP) as server, chat_on(server, **BEDROCK) as chat:
        said_by["bedrock"] = await tool_loop(chat)
        assert {request.path for request in server.requests} == {f"/model/{bedrock.MODEL}/invoke-with-response-stream"}
    async with (
        BedrockServer(TOOL_LOOP, mantle=True) as server,
        chat_on(server, f"{server.url}/anthropic", **MANTLE) as chat,
    ):
        said_by["bedrock_mantle"] = await tool_loop(chat)
    async with VertexServer(TOOL_LOOP) as server, chat_on(server, f"{server.url}/v1", **VERTEX) as chat:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(server.write_account(tmp_path / "account.json")))
        said_by["vertex"] = await tool_loop(chat)
        assert len(server.issued) == 1
        assert not server.bad_assertions
    assert len(said_by["anthropic"]) >= 8
    assert all(said == said_by["anthropic"] for said in said_by.values())


async def test_bedrock_accepts_a_session_token_and_hides_it(
    aws: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The token is part of the signature; if a server echoes it, it is in no error and no log."""
    caplog.set_level(logging.DEBUG, "codecompanion")
    heard: list[str] = []
    monkeypatch.setenv("AWS_SESSION_TOKEN", bedrock.TOKEN)
    echo = failure(400, f"The canonical request was x-amz-security-token:{bedrock.TOKEN}")
    async with BedrockServer([reply("Hello"), echo], token=bedrock.TOKEN) as server:
        adapter = make(server.url, **BEDROCK)
        adapter._connection._on_secret = heard.append
        assert (await collect(adapter, ChatRequest(messages=(user(),), model=bedrock.MODEL))).text == "Hello"
        outcome = await ask(adapter)
        assert not server.unsigned
    assert heard == [bedrock.TOKEN]
    assert type(outcome.error) is errors.RequestRejected
    assert "x-amz-security-token:[hidden]" in str(outcome.error)
    assert bedrock.TOKEN not in caplog.text


@pytest.mark.parametrize("fields", [BEDROCK, MANTLE], ids=["bedrock", "mantle"])
async def test_a_bedrock_key_is_sent_by_the_client(monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]) -> None:
    """The client itself reads AWS_BEARER_TOKEN_BEDROCK and uses it instead of a signature."""
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", bedrock.API_KEY)
    is_mantle = fields is MANTLE
    async with BedrockServer([reply("Hello")], mantle=is_mantle) as server:
        outcome = await ask(make(f"{server.url}/anthropic" if is_mantle else server.url, **fields))
        assert "x-amz-date" not in server.requests[0].headers
    assert outcome.text == "Hello"


@pytest.mark.parametrize(
    ("environ", "token"),
    [
        ({"AWS_ACCESS_KEY_ID": bedrock.KEY_ID, "AWS_SECRET_ACCESS_KEY": bedrock.SECRET}, ""),
        (
            {
                "AWS_ACCESS_KEY_ID": bedrock.KEY_ID,
                "AWS_SECRET_ACCESS_KEY": bedrock.SECRET,
                "AWS_SESSION_TOKEN": bedrock.TOKEN,
            },
            bedrock.TOKEN,
        ),
        ({"AWS_BEARER_TOKEN_BEDROCK": bedrock.API_KEY}, ""),
    ],
    ids=["key", "session", "bearer"],
)
async def test_secrets_in_the_users_environment_reach_the_client(environ: dict[str, str], token: str) -> None:
    """A host process is started without them; they are not put back into its environment."""
    async with BedrockServer([reply("Hello")], token=token) as server:
        outcome = await ask(make(server.url, environ=environ, **BEDROCK))
        assert not server.unsigned
    assert outcome.text == "Hello"
    assert not set(environ) & set(os.environ)


async def test_a_path_in_the_users_environment_reaches_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path is not a secret; Google's library reads the file in its own process only."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    async with VertexServer([reply("Hello")]) as server:
        environ = {"GOOGLE_APPLICATION_CREDENTIALS": str(server.write_account(tmp_path / "account.json"))}
        outcome = await ask(make(f"{server.url}/v1", environ=environ, **VERTEX))
    assert outcome.text == "Hello"


async def test_credentials_that_appear_later_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After `aws sso login` or setting a variable the next request works."""
    environ: dict[str, str] = {}
    async with BedrockServer([reply("Hello")]) as server:
        adapter = make(server.url, environ=environ, **BEDROCK)
        request = ChatRequest(messages=(user(),), model=bedrock.MODEL)
        assert type((await collect(adapter, request)).error) is errors.MissingKey
        environ |= {"AWS_ACCESS_KEY_ID": bedrock.KEY_ID, "AWS_SECRET_ACCESS_KEY": bedrock.SECRET}
        assert (await ask(adapter)).text == "Hello"


async def test_a_wrong_secret_is_refused_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error for a 403 has AWS's message and says where to look; the request is not retried."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", bedrock.KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    async with BedrockServer() as server:
        outcome = await ask(make(server.url, **BEDROCK))
        assert server.unsigned == ["The request signature we calculated does not match the signature you provided."]
    assert type(outcome.error) is errors.AuthenticationFailed
    assert "Check the credentials of AWS and the account." in str(outcome.error)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            BEDROCK,
            "cloud: no usable AWS credentials (Could not resolve AWS credentials from session). Log in with aws",
        ),
        (VERTEX, "cloud: no usable Google Cloud credentials (Your default credentials were not found"),
        (
            {**BEDROCK, "aws_profile": "work"},
            "(The config profile (work) could not be found). Log in with aws sso login",
        ),
        (AZURE, "cloud: no usable Entra ID credentials (DefaultAzureCredential failed to retrieve a token"),
    ],
    ids=["bedrock", "vertex", "profile", "azure"],
)
async def test_without_credentials_nothing_is_sent(fields: dict[str, Any], sentence: str, monkeypatch: Any) -> None:
    """The error names that cloud's remedy in one sentence; the next request checks again."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
    monkeypatch.setenv("PATH", "")
    async with BedrockServer() as server:
        outcome = await ask(make(f"{server.url}/v1", **fields))
        assert not server.requests
    assert type(outcome.error) is errors.MissingKey
    assert sentence in str(outcome.error)


async def test_a_throttled_bedrock_request_is_retried(aws: None) -> None:
    """Each attempt has its own signature; the body is identical."""
    waits: list[float] = []
    async with BedrockServer([rate_limited("7"), reply("Hello")]) as server:
        outcome = await ask(make(server.url, waits, **BEDROCK))
        first, second = server.requests
        assert not server.unsigned
    assert (outcome.text, waits) == ("Hello", [7.0])
    assert first.body == second.body
    assert first.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=")


@pytest.mark.parametrize(
    ("inserted", "kind", "words"),
    [
        (exception("throttlingException", THROTTLED), errors.RateLimited, THROTTLED),
        (exception("modelStreamErrorException", "The model failed"), errors.Overloaded, "The model failed"),
        (
            exception("validationException", "Input is too long for requested model."),
            errors.ContextOverflow,
            "too long",
        ),
    ],
)
async def test_an_exception_before_the_text_is_a_matching_error(
    aws: None, inserted: bytes, kind: type, words: str
) -> None:
    """An exception frame in place of the reply raises the error of the same kind as elsewhere."""
    faults = {"insert": raw_frame(inserted), "insert_at": 0, "break_after": 1, "break_with": END}
    async with BedrockServer([reply("Hello", **faults)]) as server:
        outcome = await ask(make(server.url, max_retries=0, **BEDROCK))
    assert type(outcome.error) is kind
    assert words in str(outcome.error)


@pytest.mark.parametrize(
    ("inserted", "kind", "words"),
    [
        (
            raw_frame(exception("modelStreamErrorException", "It failed")),
            errors.StreamCut,
            "aborted the reply: It failed.",
        ),
        (
            raw_frame(frame({":event-type": "chunk"}, b"{}")[:-1] + b"!"),
            errors.MalformedReply,
            "the reply cannot be read (Checksum mismatch",
        ),
        (error_event("overloaded_error", "Overloaded"), errors.StreamCut, "aborted the reply: Overloaded."),
    ],
    ids=["exception", "damaged", "error event"],
)
async def test_trouble_during_a_reply_keeps_the_received_text(
    aws: None, inserted: bytes, kind: type, words: str
) -> None:
    """The received text is kept as with any other endpoint, and nothing is sent again."""
    faults = {"insert": inserted, "insert_at": 5, "break_after": 6, "break_with": END}
    async with BedrockServer([reply("Hello, world", **faults)]) as server:
        outcome = await ask(make(server.url, **BEDROCK))
        assert len(server.requests) == 1
    assert outcome.text.startswith("Hell")
    assert words in str(outcome.error)


async def test_an_interrupted_bedrock_reply_is_kept_and_reported(aws: None) -> None:
    """Frames that end early, whether the connection breaks or closes cleanly, make the reply an interrupted one."""
    for ending in ({"break_after": 5}, {"break_after": 5, "break_with": END}):
        async with BedrockServer([reply("Hello, world", **ending)]) as server:
            outcome = await ask(make(server.url, **BEDROCK))
        assert type(outcome.error) is errors.StreamCut
        assert outcome.text.startswith("Hell")


async def test_cancelling_closes_the_bedrock_connection_at_once(aws: None) -> None:
    """The server sees the client disconnect during a reply."""
    async with BedrockServer([reply("Hello", gate=asyncio.Event(), gate_after=4)]) as server:
        task = asyncio.ensure_future(ask(make(server.url, **BEDROCK)))
        await server.wait_until(lambda: bool(server.requests))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.wait_until(lambda: server.requests[0].aborted)


async def test_a_token_refused_by_vertex_is_replaced_for_the_next_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user is notified, and sending again requests a new token. Counting needs no model in the path."""
    async with VertexServer([reply("Hello"), reply("Again")]) as server:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(server.write_account(tmp_path / "account.json")))
        adapter = make(f"{server.url}/v1", **VERTEX)
        request = ChatRequest(messages=(user(),), model=vertex.MODEL)
        assert (await collect(adapter, request)).text == "Hello"
        assert await adapter.count_tokens(request) > 0
        server.revoked.add(server.issued[0])
        refused = await collect(adapter, request)
        assert type(refused.error) is errors.AuthenticationFailed
        assert str(refused.error).startswith("cloud: the credentials of Google Cloud were refused (401). Log in again")
        assert (await ask(adapter)).text == "Again"
        assert len(server.issued) == 2


async def test_an_account_with_another_key_gets_no_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The assertion is signed, and the server checks it."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    async with VertexServer() as server:
        path = server.write_account(tmp_path / "account.json")
        other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = other.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.write_text(json.dumps({**json.loads(path.read_text()), "private_key": pem.decode()}))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        outcome = await ask(make(f"{server.url}/v1", **VERTEX))
        assert server.bad_assertions == ["InvalidSignature"]
        assert not server.issued
    assert type(outcome.error) is errors.MissingKey
    assert "Invalid JWT Signature" in str(outcome.error)


async def test_a_silent_token_endpoint_is_a_failed_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is retried, unlike wrong credentials."""
    waits: list[float] = []
    async with VertexServer() as server:
        path = server.write_account(tmp_path / "account.json")
        path.write_text(path.read_text().replace(server.url, "http://127.0.0.1:9"))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        outcome = await ask(make(f"{server.url}/v1", waits, max_retries=1, **VERTEX))
        assert not server.requests
    assert type(outcome.error) is errors.NetworkFailed
    assert "no token from Google Cloud: no answer" in str(outcome.error)
    assert len(waits) == 1


async def test_azure_gets_an_entra_id_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """The token is requested once and cached; `api-key` is not sent; a refused token is reported as such."""
    async with AzureServer([chat_reply("Hello"), chat_reply("Again")]) as server:
        monkeypatch.setenv("IDENTITY_ENDPOINT", server.identity_endpoint)
        monkeypatch.setenv("IDENTITY_HEADER", azure.IDENTITY_HEADER)
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
        adapter = make(server.url, **AZURE, key_header="api-key")
        request = ChatRequest(messages=(user(),), model="test-model")
        assert (await collect(adapter, request)).text == "Hello"
        assert (await collect(adapter, request)).text == "Again"
        assert server.issued == ["entra-token-0"]
        server.revoked.add("entra-token-0")
        outcome = await ask(adapter)
        assert "the credentials of Entra ID were refused (401)" in str(outcome.error)
        assert "entra-token-0" not in str(outcome.error)


@pytest.fixture
async def login(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EntraServer]:
    """Return a login server for Entra ID applications with a client secret."""
    async with EntraServer() as server:
        server.trusted_by(monkeypatch)
        yield server


async def test_foundry_yields_the_providers_own_events(login: EntraServer) -> None:
    """With a client secret in the user's environment, one token serves a whole conversation with thinking and tools."""
    async with AnthropicServer(TOOL_LOOP) as server:
        fields = {"transport": "httpx2", "model": SONNET.id, "headers": {"x-api-key": "sk-test"}}
        async with chat_on(server, **fields) as chat:
            expected = await tool_loop(chat)
    async with (
        FoundryServer(TOOL_LOOP, issued=login.issued) as server,
        chat_on(server, environ=entra.ACCOUNT, **FOUNDRY) as chat,
    ):
        assert await tool_loop(chat) == expected
        assert {request.path for request in server.requests} == {"/anthropic/v1/messages"}
    assert login.scopes == ["https://ai.azure.com/.default"]
    assert not set(entra.ACCOUNT) & set(os.environ)


async def test_azure_accepts_a_client_secret(login: EntraServer) -> None:
    """The token is for Azure OpenAI; it is requested once."""
    async with AzureServer([chat_reply("Hello"), chat_reply("Again")], issued=login.issued) as server:
        adapter = make(server.url, environ=entra.ACCOUNT, **AZURE)
        assert (await collect(adapter, ChatRequest(messages=(user(),), model="test-model"))).text == "Hello"
        assert (await ask(adapter)).text == "Again"
    assert login.scopes == ["https://cognitiveservices.azure.com/.default"]


@pytest.mark.parametrize("fields", [AZURE, FOUNDRY], ids=["azure", "foundry"])
async def test_a_wrong_client_secret_is_one_sentence_without_it(
    login: EntraServer, fields: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """No request is sent, and the secret is in no error and no log."""
    caplog.set_level(logging.DEBUG)
    wrong = {**entra.ACCOUNT, "AZURE_CLIENT_SECRET": "wrong~secret.EXAMPLE"}
    async with AnthropicServer() as server:
        outcome = await ask(make(server.url, environ=wrong, **fields))
        assert not server.requests
    assert type(outcome.error) is errors.MissingKey
    assert f"({entra.WRONG_SECRET[:-1]}" in str(outcome.error).replace("Authentication failed: ", "")
    assert "wrong~secret" not in str(outcome.error) + caplog.text
    caplog.clear()  # a record holds the exception of the library, and that its connection


async def test_cancelling_does_not_wait_for_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token may take as long as a password command; the request is dropped at once."""
    import threading

    import azure.identity

    asked, release = threading.Event(), threading.Event()

    def slow_provider(credential: Any, scope: str) -> Any:
        def token() -> str:
            asked.set()
            release.wait(30)
            return "late"

        return token

    monkeypatch.setattr(azure.identity, "get_bearer_token_provider", slow_provider)
    async with AzureServer() as server:
        task = asyncio.ensure_future(ask(make(server.url, **AZURE)))
        await asyncio.to_thread(asked.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not release.is_set(), "the thread still waits: nobody waited for it"
        release.set()
        assert not server.requests


@pytest.mark.parametrize("cloud", ["bedrock", "vertex"])
async def test_a_large_request_is_prepared_in_a_thread(
    cloud: str, aws: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client builds path and body from the fields without blocking the loop: a parallel stream continues."""
    client = importlib.import_module(f"anthropic.lib.{cloud}._client")
    base = importlib.import_module("anthropic._base_client")
    walked: list[tuple[bool, bool]] = []
    prepare = client._prepare_options

    def seen(options: Any, *more: Any, **named: Any) -> Any:  # further headers differ by client and version
        is_large = len(str(options.json_data)) > ASIDE_BYTES
        walked.append((is_large, threading.current_thread() is threading.main_thread()))
        return prepare(options, *more, **named)

    monkeypatch.setattr(client, "_prepare_options", seen)
    monkeypatch.setattr(base, "openapi_dumps", lambda data: pytest.fail("the client encodes on the loop"))
    long = "Łódź 🎉 " * 40_000
    async with BedrockServer() if cloud == "bedrock" else VertexServer() as server:
        server.script = [reply("Small"), reply("Large")]
        if isinstance(server, VertexServer):
            account = server.write_account(tmp_path / "account.json")
            monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account))
            adapter = make(f"{server.url}/v1", **VERTEX)
        else:
            adapter = make(server.url, **BEDROCK)
        for text, answer in (("Hi", "Small"), (long, "Large")):
            request = ChatRequest(messages=(user(text),), model=adapter.default_model)
            assert (await collect(adapter, request)).text == answer
        await adapter.aclose()
        assert server.requests[-1].json["messages"][0]["content"][0]["text"] == long
    assert walked == [(False, True), (True, False)]


async def test_bedrock_has_no_counts_and_no_model_list(aws: None) -> None:
    """No request is sent; the configured models are offered."""
    async with BedrockServer() as server:
        adapter = make(server.url, models=("one", "two"), **BEDROCK)
        assert not adapter.counts_tokens(bedrock.MODEL)
        assert await adapter.list_models() == ["one", "two"]
        await adapter.warm_up()
        await adapter.aclose()
        assert not server.requests


async def test_a_bedrock_compaction_is_read_from_its_frames(aws: None) -> None:
    """Non-streamed answers arrive in frames, too."""
    script = [Reply((), summary="What was said")]
    async with BedrockServer(script) as server, chat_on(server, **BEDROCK, options={"compaction": True}) as chat:
        chat.view.append(Message(id="u", role="user", content="Hello " * 2000))
        outcome = await chat.adapter.compact(chat.request(), "Be brief")
    assert outcome.part is not None
    assert outcome.part.text == "What was said"

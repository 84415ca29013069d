"""Tests of Copilot against a fake GitHub on this machine: login, tokens, models, headers and errors."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codecompanion import errors
from codecompanion.adapters.base import AdapterSettings, ReasoningDone
from codecompanion.adapters.copilot.adapter import CopilotAdapter
from codecompanion.adapters.copilot.device_login import DeviceCode, DeviceLogin
from codecompanion.adapters.copilot.github import GitHub, github_of
from codecompanion.adapters.copilot.github_requests import GitHubRequests
from codecompanion.adapters.copilot.stored_login import Places, find_login, forget_login, save_login
from codecompanion.errors import AuthenticationFailed, MissingKey, ModelNotFound, NetworkFailed, RateLimited
from codecompanion.model.messages import ImagePart, Message, ReasoningPart, TextPart
from codecompanion.settings import builtin_entry
from tests.adapters.conftest import WEATHER, Outcome, collect, request, user
from tests.providers.chat.answers import Call, reply
from tests.providers.github.server import LOGIN, GitHubServer, model
from tests.providers.loopback.answers import failure, json_answer, plain


@pytest.fixture
async def github() -> AsyncIterator[GitHubServer]:
    """Return a fake GitHub with a logged-in user."""
    async with GitHubServer() as server:
        yield server


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Return a home folder with our own login."""
    save_login(tmp_path / "logins.json", "github.com", LOGIN, "octocat")
    return Places({"HOME": str(tmp_path)}, tmp_path / "logins.json")


def entry(github: GitHubServer, **changes: Any) -> AdapterSettings:
    """Return the built-in entry, pointing to this machine's GitHub."""
    told = {**builtin_entry("copilot"), "options": {"github": github.base}, **changes}
    return msgspec.convert(told, AdapterSettings)


Make = Callable[..., CopilotAdapter]


@pytest.fixture
async def copilot(github: GitHubServer, places: Places) -> AsyncIterator[Make]:
    """Return a maker of adapters that are closed after the test."""
    made: list[CopilotAdapter] = []

    def make(where: Places = places, clock: Callable[[], float] | None = None, **changes: Any) -> CopilotAdapter:
        more: dict[str, Any] = {} if clock is None else {"clock": clock}
        adapter = CopilotAdapter(
            entry(github, **{"max_retries": 0, **changes}),
            {"i": b"png"}.__getitem__,
            where,
            on_key=heard.append,
            **more,
        )
        made.append(adapter)
        return adapter

    heard: list[str] = []
    make.heard = heard  # type: ignore[attr-defined]
    yield make
    for adapter in made:
        await adapter.aclose()


async def ask(adapter: CopilotAdapter, *messages: Message, model: str = "gpt-5-mini", **fields: Any) -> Outcome:
    """Run one request to its end."""
    return await collect(adapter, request(*messages, model=model, **fields))


def sent(github: GitHubServer, path: str) -> list[Any]:
    """Return the requests to a path."""
    return [seen for seen in github.requests if seen.path == path]


async def test_a_login_leads_to_an_answer(copilot: Make, github: GitHubServer) -> None:
    """The token is exchanged once and the models are listed once, at the URL given by GitHub."""
    adapter = copilot()
    for _ in range(2):
        assert (await ask(adapter)).text == "You said: Hello"
    assert [seen.path for seen in github.requests] == [
        "/copilot_internal/v2/token",
        "/models",
        "/chat/completions",
        "/chat/completions",
    ]
    assert github.requests[0].headers["authorization"] == f"token {LOGIN}"
    assert LOGIN not in str([seen.headers for seen in github.requests[1:]]), "Copilot never gets the login"


async def test_without_a_model_copilots_default_is_used(copilot: Make, github: GitHubServer) -> None:
    """The default is the model with `is_chat_default`, else the fallback model, else the first of the list."""
    adapter = copilot()
    assert (await ask(adapter, model="")).text
    assert sent(github, "/chat/completions")[0].json["model"] == adapter.default_model == "gpt-5-mini"


async def test_only_models_the_account_may_choose_are_offered(copilot: Make) -> None:
    """Embedding models, hidden models and models with unaccepted terms are not offered."""
    adapter = copilot()
    assert await adapter.list_models() == ["claude-sonnet-5", "gpt-5-mini", "gpt-5.4"]
    limits = adapter.limits("gpt-5.4")
    assert limits is not None
    assert (limits.context_window, limits.max_output_tokens) == (200_000, 64_000), "the longest prompt"
    assert adapter.limits("") == limits, "the model it starts with"
    assert adapter.limits("nobody") is None


async def test_unaccepted_terms_are_reported(copilot: Make, github: GitHubServer) -> None:
    """Nothing is sent, and nothing is accepted in the user's name."""
    outcome = await ask(copilot(), model="claude-opus-5")
    assert isinstance(outcome.error, errors.RequestRejected)
    assert "its terms were not accepted" in str(outcome.error)
    assert "https://github.com/settings/copilot" in str(outcome.error)
    assert sent(github, "/chat/completions") == []
    assert not any("policy" in seen.path for seen in github.requests)


async def test_a_model_is_used_at_its_own_endpoint(copilot: Make, github: GitHubServer) -> None:
    """Responses is used if available; Chat Completions is preferred to the Messages API."""
    message: dict[str, Any] = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
    message["content"] = [{"type": "output_text", "text": "from responses", "annotations": []}]
    done = {"id": "r", "object": "response", "status": "completed", "model": "gpt-5.4", "output": [message]}
    events = [
        {"type": "response.output_item.done", "output_index": 0, "item": message},
        {"type": "response.completed", "response": {**done, "usage": {"input_tokens": 9, "output_tokens": 4}}},
    ]
    github.script = [plain(b"".join(b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events))]
    adapter = copilot()
    assert (await ask(adapter, model="gpt-5.4")).text == "from responses"
    assert sent(github, "/responses")[0].json["store"] is False
    assert (await ask(adapter, model="claude-sonnet-5")).text == "You said: Hello"


async def test_the_messages_api_accepts_the_token_as_a_bearer(copilot: Make, github: GitHubServer) -> None:
    """No API key is sent."""
    github.models = [model("claude-x", "/v1/messages")]
    github.chat_failures = [failure(500, "seen")]
    await ask(copilot(), model="claude-x")
    [seen] = sent(github, "/v1/messages")
    assert seen.headers["authorization"].startswith("Bearer tid=")
    assert "x-api-key" not in seen.headers
    assert seen.json["model"] == "claude-x"


async def test_the_initiator_is_sent_because_it_is_billed(copilot: Make, github: GitHubServer) -> None:
    """Messages from the user are marked as such; follow-up requests and summaries are not."""
    adapter = copilot()
    github.script = [reply(calls=[Call("weather", id="call_1")])]
    first = await ask(adapter, tools=(WEATHER,))
    [call] = first.finished.tool_calls
    turn = (
        user(),
        Message(id="a", role="assistant", tool_calls=(call,)),
        Message(id="r", role="tool", content="sunny", tool_call_id=call.id),
    )
    await ask(adapter, *turn, tools=(WEATHER,))
    await ask(adapter, *turn, user("Thanks", 2), tools=(WEATHER,))
    await ask(adapter, user("Summarise"), purpose="summary")
    told = [seen.headers["x-initiator"] for seen in sent(github, "/chat/completions")]
    assert told == ["user", "agent", "user", "agent"]


async def test_a_request_with_an_image_has_its_own_header(copilot: Make, github: GitHubServer) -> None:
    """Requests without an image do not have the header."""
    adapter = copilot()
    picture = Message(id="u", role="user", content=(TextPart("Look:"), ImagePart(sha256="i", mime="image/png")))
    assert (await ask(adapter, picture)).error is None
    assert (await ask(adapter)).error is None
    told = [seen.headers.get("copilot-vision-request") for seen in sent(github, "/chat/completions")]
    assert told == ["true", None]


async def test_reasoning_is_sent_back_with_its_encrypted_part(copilot: Make, github: GitHubServer) -> None:
    """`reasoning_text` is shown and `reasoning_opaque` is kept with it.

    A tool turn sends both back, only to Copilot.
    """
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "reasoning_text": "Look "},
        {"reasoning_text": "it up."},
        {"tool_calls": [call], "reasoning_opaque": "b3BhcXVl"},
    ]
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    body = b"".join(b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
    github.script = [plain(body)]
    adapter = copilot()
    thought = await ask(adapter, tools=(WEATHER,))
    assert thought.reasoning == "Look it up."
    [done] = [event for event in thought.events if isinstance(event, ReasoningDone)]
    part = ReasoningPart(thought.reasoning, "reasoning_details", done.origin, done.encrypted)
    history = (
        user(),
        Message(id="a", role="assistant", content=(part,), tool_calls=thought.finished.tool_calls),
        Message(id="r", role="tool", content="sunny", tool_call_id="c1"),
    )
    assert (await ask(adapter, *history, tools=(WEATHER,))).error is None
    back = sent(github, "/chat/completions")[1].json["messages"][1]
    assert (back["reasoning_text"], back["reasoning_opaque"]) == ("Look it up.", "b3BhcXVl")
    assert "reasoning_details" not in back


async def test_a_token_is_renewed_before_it_expires(copilot: Make, github: GitHubServer) -> None:
    """The expiry is tracked by a monotonic clock; parallel requests exchange the token once."""
    now = [0.0]
    adapter = copilot(clock=lambda: now[0])
    await asyncio.gather(*(ask(adapter) for _ in range(3)))
    assert github.exchanges == 1
    now[0] = 1499
    await ask(adapter)
    assert github.exchanges == 1
    now[0] = 1501
    await ask(adapter)
    assert github.exchanges == 2
    used = {seen.headers["authorization"][-60:] for seen in sent(github, "/chat/completions")}
    assert len(used) == 2


@pytest.mark.parametrize("life", [-100_000, 0, 30])
async def test_a_wrong_clock_does_not_cause_an_exchange_per_request(
    copilot: Make, github: GitHubServer, life: int
) -> None:
    """A token that this machine's clock considers expired is still used."""
    github.token_life, github.tells_refresh = life, False
    adapter = copilot()
    for _ in range(3):
        assert (await ask(adapter)).error is None
    assert github.exchanges == 1


async def test_a_refused_token_is_exchanged_once_more(copilot: Make, github: GitHubServer) -> None:
    """The token may be refused after a suspend; the user does not notice the exchange."""
    adapter = copilot()
    await ask(adapter)
    github.valid.clear()
    assert (await ask(adapter)).text == "You said: Hello"
    assert github.exchanges == 2


async def test_a_token_refused_again_is_an_error(copilot: Make, github: GitHubServer) -> None:
    """The request is sent twice and no more."""
    adapter = copilot()
    await ask(adapter)
    github.chat_failures = [plain(b"unauthorized", status=401), plain(b"unauthorized", status=401)]
    outcome = await ask(adapter)
    assert isinstance(outcome.error, AuthenticationFailed)
    assert ":CodeCompanion login copilot" in str(outcome.error)
    assert len(sent(github, "/chat/completions")) == 3


@pytest.mark.parametrize("status", [403, 404])
async def test_an_account_without_copilot_is_reported_as_such(copilot: Make, github: GitHubServer, status: int) -> None:
    """The error does not mention a key."""
    github.exchange_status = status
    outcome = await ask(copilot())
    assert isinstance(outcome.error, AuthenticationFailed)
    assert f"this GitHub account has no access to Copilot ({status}" in str(outcome.error)
    assert "https://github.com/settings/copilot" in str(outcome.error)


async def test_a_login_refused_by_github_names_its_source(copilot: Make, github: GitHubServer) -> None:
    """The error for a revoked login names the file it came from."""
    github.logins = []
    outcome = await ask(copilot())
    assert isinstance(outcome.error, AuthenticationFailed)
    assert "GitHub refused the login from the file" in str(outcome.error)
    assert "logins.json" in str(outcome.error)
    assert LOGIN not in str(outcome.error)


@pytest.mark.parametrize(
    "answer",
    [
        plain(b"quota exceeded\n", status=429),
        failure(402, "You have no quota", code="quota_exceeded"),
        json_answer({"error": {"message": "You have exceeded your premium request allowance."}}, status=402),
    ],
)
async def test_an_exhausted_allowance_is_reported_and_not_retried(
    copilot: Make, github: GitHubServer, answer: Any
) -> None:
    """A wait of seconds does not help."""
    github.chat_failures = [answer]
    outcome = await ask(copilot(max_retries=3))
    assert isinstance(outcome.error, RateLimited)
    assert "Copilot's allowance is used up" in str(outcome.error)
    assert len(sent(github, "/chat/completions")) == 1
    assert outcome.retries == []


async def test_too_many_requests_are_retried_after_a_wait(copilot: Make, github: GitHubServer) -> None:
    """This error is temporary."""
    github.chat_failures = [failure(429, "rate limit exceeded", headers={"retry-after": "0.01"})]
    outcome = await ask(copilot(max_retries=1))
    assert (len(outcome.retries), outcome.text) == (1, "You said: Hello")


async def test_a_removed_model_is_reported_as_such(copilot: Make) -> None:
    """The error says that the model is gone, although Copilot calls it "not supported"."""
    outcome = await ask(copilot(), model="gpt-3")
    assert isinstance(outcome.error, ModelNotFound)
    assert "gpt-3" in str(outcome.error)


async def test_a_failing_model_list_stops_nothing(copilot: Make, github: GitHubServer) -> None:
    """A named model is used at the default endpoint."""
    models, github.models = github.models, []
    adapter = copilot()
    await adapter.warm_up()
    assert (await ask(adapter, model="")).error is not None
    github.models = models
    assert (await ask(adapter)).text == "You said: Hello"


async def test_an_unencrypted_address_gets_no_token(copilot: Make, github: GitHubServer) -> None:
    """The token is never sent over plain HTTP, whatever endpoint GitHub returns."""
    github.endpoint = "http://evil.example"
    adapter = copilot(base_url=github.base)
    assert (await ask(adapter)).text == "You said: Hello"


async def test_an_offline_machine_is_reported_in_one_sentence(copilot: Make, github: GitHubServer) -> None:
    """A refused connection becomes a network error."""
    adapter = copilot()
    await github.close()
    outcome = await ask(adapter)
    assert isinstance(outcome.error, NetworkFailed)
    assert "no connection to" in str(outcome.error)


async def test_no_secret_is_shown_and_all_are_redacted(copilot: Make, github: GitHubServer) -> None:
    """Objects with a secret have no `repr`; both secrets are registered for redaction."""
    adapter = copilot()
    github.chat_failures = [failure(400, f"you sent {LOGIN}")]
    outcome = await ask(adapter)
    await ask(adapter)
    shown = f"{adapter!r} {adapter.__dict__!r} {outcome.error}"
    assert LOGIN not in shown
    assert "tid=" not in shown
    heard = copilot.heard  # type: ignore[attr-defined]
    assert LOGIN in heard
    assert any(secret.startswith("tid=") for secret in heard)


async def test_two_neovims_do_not_disturb_each_other(copilot: Make, github: GitHubServer) -> None:
    """Each has its own token, and both stay valid."""
    first, second = copilot(), copilot()
    for adapter in (first, second, first):
        assert (await ask(adapter)).error is None
    assert github.exchanges == 2


class Waits:
    """Records the waits of a login and advances its own clock instead of waiting."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.now = 0.0

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        self.now += seconds


async def log_in(github: GitHubServer, waits: Waits) -> tuple[str, list[DeviceCode]]:
    """Log in like a user; return the token and the displayed codes."""
    codes: list[DeviceCode] = []
    settings = entry(github)
    web = GitHubRequests(settings, github.base)
    login = DeviceLogin("copilot", github_of(settings), web, clock=lambda: waits.now, sleep=waits.sleep)
    try:
        return await login.run(codes.append), codes
    finally:
        await web.aclose()


async def test_a_code_is_shown_and_its_token_polled(github: GitHubServer) -> None:
    """The token is polled at GitHub's interval."""
    github.pending, github.interval = 3, 5
    waits = Waits()
    token, codes = await log_in(github, waits)
    assert token == LOGIN
    assert codes == [DeviceCode("WDJB-MJHT", f"{github.base}/login/device", 900)]
    assert waits.asked == [5, 5, 5, 5]


async def test_slow_down_is_respected(github: GitHubServer) -> None:
    """The new interval is the one given by GitHub, or five seconds more than before."""
    github.pending, github.login_error = 0, {"error": "slow_down", "interval": 10}
    waits = Waits()
    await log_in(github, waits)
    assert waits.asked == [1, 10]
    github.pending, github.login_error = 0, {"error": "slow_down"}
    waits = Waits()
    await log_in(github, waits)
    assert waits.asked == [1, 6]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("access_denied", "you declined the login"),
        ("expired_token", "has expired"),
        ("device_flow_disabled", "GitHub did not accept the login (device_flow_disabled)"),
    ],
)
async def test_an_end_without_a_token_gives_the_reason(github: GitHubServer, error: str, said: str) -> None:
    """Each of GitHub's error codes has its own message."""
    github.pending, github.login_error = 0, {"error": error}
    with pytest.raises(AuthenticationFailed) as caught:
        await log_in(github, Waits())
    assert said in str(caught.value)


async def test_an_unused_code_expires(github: GitHubServer) -> None:
    """The login ends even if GitHub never reports the expiry."""
    github.pending, github.interval, github.expires_in = 10_000, 5, 60
    waits = Waits()
    with pytest.raises(AuthenticationFailed, match="has expired"):
        await log_in(github, waits)
    assert sum(waits.asked) <= 70


@pytest.mark.parametrize("where", ["XDG_CONFIG_HOME", "LOCALAPPDATA", "HOME"])
@pytest.mark.parametrize(
    ("name", "key"), [("apps.json", "github.com:Iv1.b507a08c87ecfe98"), ("hosts.json", "github.com")]
)
def test_the_login_of_other_plugins_is_found(tmp_path: Path, where: str, name: str, key: str) -> None:
    """Logins are read from the files of other plugins."""
    folder = tmp_path / (".config/github-copilot" if where == "HOME" else "github-copilot")
    folder.mkdir(parents=True)
    others = {"evilgithub.com": {"oauth_token": "gho_evil"}, "company.ghe.com": {"oauth_token": "gho_company"}}
    (folder / name).write_text(json.dumps({**others, key: {"user": "octocat", "oauth_token": LOGIN}}))
    login = find_login(Places({where: str(tmp_path)}), "copilot")
    assert (login.token, login.where) == (LOGIN, f"the file {folder / name}")
    assert LOGIN not in repr(login)
    assert find_login(Places({where: str(tmp_path)}, None, "company.ghe.com"), "copilot").token == "gho_company"


def test_the_sources_have_an_order(tmp_path: Path) -> None:
    """An environment variable takes precedence over stored logins; our own login over those of other plugins."""
    folder = tmp_path / ".config/github-copilot"
    folder.mkdir(parents=True)
    (folder / "hosts.json").write_text(json.dumps({"github.com": {"oauth_token": "gho_theirs"}}))
    own = tmp_path / "logins.json"
    environ = {"HOME": str(tmp_path), "GITHUB_TOKEN": "ghp_for_other_things"}
    assert find_login(Places(environ, own), "copilot").token == "gho_theirs"
    save_login(own, "github.com", "gho_own", "me")
    assert find_login(Places(environ, own), "copilot").token == "gho_own"
    assert find_login(Places({**environ, "CODESPACES": "true"}, own), "copilot").where == "GITHUB_TOKEN"
    assert find_login(Places({**environ, "COPILOT_GITHUB_TOKEN": "gho_x"}, own), "copilot").token == "gho_x"
    assert forget_login(own)
    assert not forget_login(own)
    assert find_login(Places(environ, own), "copilot").token == "gho_theirs"


def test_the_database_of_newer_plugins_is_read(tmp_path: Path) -> None:
    """An encrypted entry is not used as a token."""
    folder = tmp_path / "github-copilot"
    folder.mkdir()
    for token, found in ((LOGIN, True), ("AQIDBAUGBwg", False)):
        (folder / "auth.db").unlink(missing_ok=True)
        with sqlite3.connect(folder / "auth.db") as database:
            database.execute("CREATE TABLE oauth_tokens (auth_authority TEXT, token_ciphertext BLOB)")
            database.execute("INSERT INTO oauth_tokens VALUES (?, ?)", ("github.com", token.encode()))
        database.close()
        places = Places({"XDG_CONFIG_HOME": str(tmp_path)})
        if found:
            assert find_login(places, "copilot").token == LOGIN
        else:
            with pytest.raises(MissingKey):
                find_login(places, "copilot")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[]", "not logged in"),
        (b'{"github.com": {"oauth_token": ""}}', "not logged in"),
        (b'{"github.com": {"oauth_token": "two\\nlines"}}', "contains no token"),
        (None, "cannot be read"),
    ],
)
def test_a_broken_file_is_named_with_a_remedy(tmp_path: Path, content: bytes | None, said: str) -> None:
    """A folder in place of the file is reported as well; none of the content is shown."""
    own = tmp_path / "logins.json"
    own.mkdir() if content is None else own.write_bytes(content)
    with pytest.raises(MissingKey) as caught:
        find_login(Places({"HOME": str(tmp_path)}, own), "copilot")
    text = str(caught.value)
    assert said in text
    assert "Run :CodeCompanion login copilot." in text
    assert "two" not in text
    assert caught.value.brief == "not logged in; :CodeCompanion login copilot"


def test_our_own_login_is_private(tmp_path: Path) -> None:
    """The file is replaced atomically; logins for other hosts are kept."""
    own = tmp_path / "state/logins.json"
    save_login(own, "company.ghe.com", "gho_company", "me")
    own.chmod(0o644)
    save_login(own, "github.com", LOGIN, "me")
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    assert set(json.loads(own.read_text())) == {"company.ghe.com", "github.com"}
    assert [path.name for path in own.parent.iterdir()] == ["logins.json"]


def test_a_company_may_have_its_own_github() -> None:
    """`opts.github` sets the host; its API is at `api.` in front of it."""
    settings = msgspec.convert(
        {**builtin_entry("copilot"), "options": {"github": "https://company.ghe.com/"}}, AdapterSettings
    )
    assert github_of(settings) == GitHub("https://company.ghe.com", "https://api.company.ghe.com")
    assert github_of(settings).host == "company.ghe.com"

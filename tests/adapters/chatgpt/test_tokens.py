"""Tokens that live for an hour and rotate: refreshed once by one of several Neovims, and never lost."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import msgspec
import pytest

from codecompanion.adapters.chatgpt.access import EARLY_S
from codecompanion.adapters.chatgpt.sign_in_server import ENDED
from codecompanion.adapters.chatgpt.stored_login import Session
from codecompanion.adapters.registry import AdapterRegistry
from codecompanion.errors import AuthenticationFailed, InputError, MissingKey, NetworkFailed
from tests.adapters.chatgpt.conftest import Clock, Maker, ask, log_in, sent
from tests.providers.chatgpt.server import ChatGPTServer
from tests.providers.chatgpt.sign_in import TOKEN
from tests.providers.loopback.answers import Answer, failure, json_answer, plain, silence

ROOT = Path(__file__).parents[3]
HOUR = 3600


def kept(make: Maker) -> Session:
    """Return the login stored in its file."""
    session = make.stored.session()
    assert session is not None
    return session


def renewals(openai: ChatGPTServer) -> int:
    """Return the number of refresh requests."""
    return sum(b"grant_type=refresh_token" in seen.body for seen in sent(openai, TOKEN))


async def test_a_token_is_refreshed_before_it_expires(make: Maker, openai: ChatGPTServer, clock: Clock) -> None:
    """The token is refreshed once an hour; the new refresh token replaces the old one."""
    adapter = await make.logged_in()
    first = kept(make)
    for hour in range(1, 4):
        clock.now += HOUR - EARLY_S + 1
        openai.sign_in.claims["exp"] = clock.now + HOUR
        assert (await ask(adapter)).text == "You said: Hello"
        assert (await ask(adapter)).text == "You said: Hello"
        assert renewals(openai) == hour
    assert kept(make).refresh_token not in (first.refresh_token, "")
    assert kept(make).user == "ada@example.com"
    assert {kept(make).access_token, kept(make).refresh_token} <= set(make.heard)


async def test_two_chats_refresh_it_once(make: Maker, openai: ChatGPTServer, clock: Clock) -> None:
    """Concurrent requests, in one Neovim or several, cause one refresh and share the new token."""
    await make.logged_in()
    clock.now += HOUR
    one, two = make(), make()
    asks = [ask(adapter) for adapter in (one, one, two, two)]
    assert [outcome.text for outcome in await asyncio.gather(*asks)] == ["You said: Hello"] * 4
    assert renewals(openai) == 1


async def test_two_neovims_refresh_it_once(make: Maker, openai: ChatGPTServer) -> None:
    """Two processes that start at the same moment cause one refresh."""
    make.clock.now = time.time()
    await _expired_login(make)
    answers = await asyncio.gather(*(_other_neovim(make, openai) for _ in range(3)))
    assert answers == ["You said: Hello"] * 3
    assert renewals(openai) == 1


async def test_a_refused_token_is_refreshed_once_more(make: Maker, openai: ChatGPTServer) -> None:
    """A second refusal is reported; the login is kept, because OpenAI may be at fault."""
    adapter = await make.logged_in()
    openai.sign_in.expire()
    assert (await ask(adapter)).text == "You said: Hello"
    assert renewals(openai) == 1
    openai.failures = [json_answer({"detail": "no"}, status=401) for _ in range(2)]
    outcome = await ask(adapter)
    assert isinstance(outcome.error, AuthenticationFailed)
    assert "Log in again with :CodeCompanion login chatgpt" in str(outcome.error)
    assert renewals(openai) == 2
    assert (await ask(adapter)).text == "You said: Hello"


TROUBLE: dict[str, Answer] = {
    "503": json_answer({"error": {"code": "temporarily_unavailable"}}, status=503),
    "429": failure(429, "slow down"),
    "a web page": plain(b"<html>Captive portal</html>", content_type="text/html"),
    "400 of a new kind": failure(400, "what is this", code="unheard_of"),
    "an unknown client": json_answer({"error": "invalid_client"}, status=401),
}


@pytest.mark.parametrize("what", TROUBLE)
async def test_temporary_trouble_loses_nothing(make: Maker, openai: ChatGPTServer, clock: Clock, what: str) -> None:
    """A token that is still valid is used; an expired one makes the request fail, and the next attempt succeeds."""
    adapter = await make.logged_in()
    before = kept(make)
    clock.now += HOUR - EARLY_S + 1
    openai.sign_in.failures = [TROUBLE[what]]
    assert (await ask(adapter)).text == "You said: Hello"
    assert kept(make) == before
    clock.now += EARLY_S
    openai.sign_in.failures = [TROUBLE[what]]
    outcome = await ask(adapter)
    assert outcome.error is not None
    assert before.refresh_token not in str(outcome.error)
    assert kept(make) == before
    assert (await ask(adapter)).text == "You said: Hello"


async def test_a_missing_network_loses_nothing(make: Maker, openai: ChatGPTServer, clock: Clock) -> None:
    """The file is unchanged."""
    adapter = await make.logged_in()
    before = make.stored.file.read_bytes()
    clock.now += HOUR
    await openai.close()
    assert isinstance((await ask(adapter)).error, NetworkFailed)
    assert make.stored.file.read_bytes() == before


@pytest.mark.parametrize("code", sorted(ENDED))
@pytest.mark.parametrize("nested", [False, True])
async def test_an_ended_login_is_reported_once(
    make: Maker, openai: ChatGPTServer, clock: Clock, code: str, nested: bool
) -> None:
    """The tokens are deleted, the registration kept; after the next login everything works as before."""
    adapter = await make.logged_in()
    clock.now += HOUR
    openai.sign_in.claims["exp"] = clock.now + HOUR
    openai.sign_in.failures = [json_answer({"error": {"code": code} if nested else code}, status=400)]
    outcome = await ask(adapter)
    told = f"chatgpt: the ChatGPT login has expired ({code}). Log in again with :CodeCompanion login chatgpt."
    assert str(outcome.error) == told
    assert isinstance((await ask(adapter)).error, MissingKey)
    assert renewals(openai) == 1
    await log_in(adapter)
    assert (await ask(adapter)).text == "You said: Hello"
    assert len(openai.sign_in.clients) == 1


async def test_a_reused_refresh_token_ends_the_login(make: Maker, openai: ChatGPTServer, clock: Clock) -> None:
    """Restoring an old copy of the file makes the login expire, without endless retries."""
    adapter = await make.logged_in()
    old = make.stored.file.read_bytes()
    clock.now += HOUR
    await ask(adapter)
    make.stored.file.write_bytes(old)
    assert "has expired (refresh_token_reused)" in str((await ask(adapter)).error)
    assert renewals(openai) == 2


async def test_a_revoked_plan_is_reported(make: Maker, openai: ChatGPTServer, clock: Clock) -> None:
    """A refreshed login without the permission is not used."""
    adapter = await make.logged_in()
    clock.now += HOUR
    openai.sign_in.token_answer = {"scope": "openid profile email offline_access"}
    assert "no longer allows using your plan" in str((await ask(adapter)).error)
    assert sent(openai) == []


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"sub": "somebody"}, "the ChatGPT login is for another account"),
        ({"iss": "https://evil.example"}, "the ChatGPT login returned an invalid ID token: it is from another issuer"),
    ],
)
async def test_a_refreshed_login_of_another_user_is_not_used(
    make: Maker, openai: ChatGPTServer, clock: Clock, claims: dict[str, str], said: str
) -> None:
    """Its tokens are discarded."""
    adapter = await make.logged_in()
    clock.now += HOUR
    openai.sign_in.claims |= {"exp": clock.now + HOUR, **claims}
    assert said in str((await ask(adapter)).error)
    assert sent(openai) == []
    assert not make.stored.file.exists()


async def test_a_response_may_omit_unchanged_values(make: Maker, openai: ChatGPTServer, clock: Clock) -> None:
    """The scope (RFC 6749, 5.1), the refresh token (6) and the identity (OpenID Connect, 12.2) may be missing."""
    adapter = await make.logged_in()
    before = kept(make)
    clock.now += HOUR
    openai.sign_in.token_answer = {"scope": None, "refresh_token": None, "id_token": None}
    assert (await ask(adapter)).text == "You said: Hello"
    after = kept(make)
    assert (after.refresh_token, after.scopes) == (before.refresh_token, before.scopes)
    assert after.access_token != before.access_token


async def test_stopping_a_request_does_not_stop_the_refresh(make: Maker, openai: ChatGPTServer, clock: Clock) -> None:
    """OpenAI has already issued the new tokens: they arrive and are stored."""
    adapter = await make.logged_in()
    before = kept(make)
    clock.now += HOUR
    gate = openai.gates["refresh_token"] = asyncio.Event()
    asking = asyncio.create_task(ask(adapter))
    await openai.wait_until(lambda: renewals(openai) == 1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    gate.set()
    assert (await ask(adapter)).text == "You said: Hello"
    assert kept(make).refresh_token != before.refresh_token
    assert renewals(openai) == 1


async def test_a_stopping_host_stores_the_pending_tokens(make: Maker, openai: ChatGPTServer, clock: Clock) -> None:
    """It waits up to a second for a refresh in progress."""
    adapter = await make.logged_in()
    before = kept(make)
    clock.now += HOUR
    gate = openai.gates["refresh_token"] = asyncio.Event()
    asking = asyncio.create_task(ask(adapter))
    await openai.wait_until(lambda: renewals(openai) == 1)
    asking.cancel()
    stopping = asyncio.create_task(adapter.aclose())
    await asyncio.sleep(0)
    gate.set()
    await stopping
    assert kept(make).refresh_token != before.refresh_token


async def test_a_token_that_cannot_be_stored_is_still_used(
    make: Maker, openai: ChatGPTServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the disk is full, this Neovim continues with the new token, and the next one is written."""
    adapter = await make.logged_in()
    before = kept(make)
    clock.now += HOUR

    def full(session: Session) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(adapter._access._stored, "keep", full)
        assert (await ask(adapter)).text == "You said: Hello"
        assert (await ask(adapter)).text == "You said: Hello"
        assert renewals(openai) == 1
        assert kept(make) == before
    clock.now += HOUR
    openai.sign_in.claims["exp"] = clock.now + HOUR
    assert (await ask(adapter)).text == "You said: Hello"
    assert kept(make).access_token in make.heard[-2:]


@pytest.mark.parametrize("rotated", [False, True])
async def test_a_host_killed_during_a_refresh_leaves_no_lock(make: Maker, openai: ChatGPTServer, rotated: bool) -> None:
    """If the host is killed before OpenAI issues new tokens, the next host requests them.

    If after, the user logs in again.
    """
    make.clock.now = time.time()
    await _expired_login(make)
    if rotated:
        openai.gates["refresh_token"] = asyncio.Event()
    else:
        openai.sign_in.failures = [silence()]
    host = await _start(make, openai)
    await openai.wait_until(lambda: renewals(openai) == 1)
    waiting = asyncio.create_task(_other_neovim(make, openai))
    await asyncio.sleep(0.2)  # it may have to wait for the lock, or may not have started: both must come out right
    openai.gates.clear()
    os.kill(host.pid, signal.SIGKILL)
    await host.communicate()
    ended = "chatgpt: the ChatGPT login has expired (refresh_token_reused)."
    answer = await waiting
    assert answer.startswith(ended) if rotated else answer == "You said: Hello"
    assert sorted(file.name for file in make.folder.iterdir() if ".json." in file.name) == []


async def test_the_wait_for_another_neovim_has_a_limit(
    make: Maker, openai: ChatGPTServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another Neovim hangs during a refresh, a chat and a logout report it; afterwards everything works."""
    monkeypatch.setattr("codecompanion.adapters.chatgpt.stored_login.LOCK_LIMIT_S", 0.1)
    adapter = await make.logged_in()
    clock.now += HOUR
    async with make.stored.lock():
        outcome = await ask(adapter)
        assert isinstance(outcome.error, NetworkFailed)
        assert "another Neovim is still refreshing the login. Try again." in str(outcome.error)
        with pytest.raises(InputError, match=r"Another Neovim is changing the ChatGPT login; try again\."):
            await adapter.login().forget()
    assert (await ask(adapter)).text == "You said: Hello"


async def test_the_tokens_of_a_login_are_redacted_before_first_use(make: Maker) -> None:
    """Stored tokens are redacted even if a chat with another adapter runs a command that prints the file."""
    await make.logged_in()
    registry = AdapterRegistry({}, read_blob={}.__getitem__, summarise=lambda messages, limit: "", logins=make.folder)
    assert {kept(make).access_token, kept(make).refresh_token} <= set(registry.secret_values())
    make.stored.file.write_text("{" * 5_000)
    (make.folder / "logins.json").write_text('{"github.com": {"oauth_token": "gho_1", "user": "ada"}, "x": [1, null]}')
    assert registry.secret_values() == ["gho_1"]


async def _expired_login(make: Maker) -> None:
    """Log in, and let the access token expire."""
    make.openai.sign_in.claims["exp"] = time.time() + HOUR
    await make.logged_in()
    make.stored.keep(msgspec.structs.replace(kept(make), expires_at=time.time() - 1))


async def _start(make: Maker, openai: ChatGPTServer) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.adapters.chatgpt.host", str(make.folder), openai.url),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{ROOT}"},
        stdout=asyncio.subprocess.PIPE,
    )


async def _other_neovim(make: Maker, openai: ChatGPTServer) -> str:
    out, _ = await (await _start(make, openai)).communicate()
    return out.decode().strip()

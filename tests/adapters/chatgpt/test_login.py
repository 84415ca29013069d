"""Logging in with ChatGPT: the page, the redirect to this machine, the stored files, and rejected redirects."""

from __future__ import annotations

import asyncio
import socket
import stat
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from codecompanion.adapters.chatgpt.login import ChatGPTLogin
from codecompanion.adapters.chatgpt.provider import Provider
from codecompanion.adapters.chatgpt.stored_login import StoredLogin
from codecompanion.adapters.login_adapter import LoginPage
from codecompanion.errors import AdapterError, AuthenticationFailed, ConfigError, InputError, MalformedReply, MissingKey
from tests.adapters.chatgpt.conftest import Clock, Maker, ask, entry, log_in, sent
from tests.providers.chatgpt.browser import come_back, get, sign_in
from tests.providers.chatgpt.server import ChatGPTServer
from tests.providers.chatgpt.sign_in import REVOKE, TOKEN
from tests.providers.loopback.answers import failure


def asked(openai: ChatGPTServer) -> list[dict[str, str]]:
    """Return the query of each sign-in page."""
    pages = sent(openai, "/api/accounts/authorize")
    return [{name: values[0] for name, values in parse_qs(page.query).items()} for page in pages]


async def test_a_login_leads_to_an_answer(make: Maker, openai: ChatGPTServer) -> None:
    """The user is logged in, the models are listed and a reply arrives.

    The plan notice is shown only the first time.
    """
    adapter = make()
    done = await log_in(adapter)
    assert (done.user, done.problem) == ("ada@example.com", "")
    assert done.notice[0] == "You're using your ChatGPT plan"
    assert "https://chatgpt.com/settings/usage" in done.notice[1]
    assert await adapter.list_models() == ["gpt-6-sol", "gpt-6-luna"]
    assert (await ask(adapter)).text == "You said: Hello"
    assert not openai.refusals
    assert (await log_in(adapter)).notice == ("", "")


async def test_without_a_login_the_error_names_the_command(make: Maker, openai: ChatGPTServer) -> None:
    """No request is sent."""
    outcome = await ask(make())
    assert isinstance(outcome.error, MissingKey)
    assert str(outcome.error) == "chatgpt: not logged in to ChatGPT. Run :CodeCompanion login chatgpt."
    assert openai.requests == []


async def test_an_account_is_registered_once(make: Maker, openai: ChatGPTServer) -> None:
    """The issued id and this installation's id are reused, even after a logout; a later login names the account."""
    adapter = make()
    await log_in(adapter)
    await adapter.login().forget()
    await log_in(make())
    first, second = asked(openai)
    assert first["client_id"] == "dynamic_agent_client"
    assert first["agent_name_hint"] == "CodeCompanion for Neovim"
    assert second["client_id"] == "oaiapp_00000001"
    assert second["login_hint"] == "ada@example.com"
    assert "agent_name_hint" not in second
    assert first["ext_agent_host_id"] == second["ext_agent_host_id"]
    assert {first[name] for name in ("state", "nonce", "code_challenge")}.isdisjoint(second.values())


async def test_the_stored_files_are_private(make: Maker) -> None:
    """Both files are private, only one of them contains tokens, and every secret was registered for redaction."""
    adapter = await make.logged_in()
    await ask(adapter)
    session = make.stored.session()
    assert session is not None
    files = sorted(make.folder.iterdir())
    assert [file.name for file in files] == ["chatgpt-accounts.json", "chatgpt.json", "chatgpt.lock"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert session.refresh_token not in files[0].read_text()
    assert {session.access_token, session.refresh_token} <= set(make.heard)
    shown = f"{session!r}{adapter!r}{adapter.login()!r}{make.stored.accounts()!r}"
    assert session.access_token not in shown
    assert session.refresh_token not in shown


async def test_a_declined_login_changes_nothing(make: Maker, openai: ChatGPTServer) -> None:
    """The error is one sentence, and no token is requested."""
    openai.sign_in.consent = "deny"
    with pytest.raises(AuthenticationFailed, match=r"you declined the login on ChatGPT's page. Nothing was changed."):
        await log_in(make())
    assert sent(openai, TOKEN) == []
    assert make.stored.session() is None


async def test_a_plan_that_is_not_granted_is_not_used(make: Maker, openai: ChatGPTServer) -> None:
    """The scope in the token response decides; the next login asks for consent again, with the same registration."""
    openai.sign_in.consent = "identity"
    openai.sign_in.callback = {"scope": "chatgpt.tokens.use.direct"}
    adapter = make()
    done = await log_in(adapter)
    assert done.problem.startswith("chatgpt may not use your ChatGPT plan: log in again and grant access")
    assert isinstance((await ask(adapter)).error, MissingKey)
    openai.sign_in.consent = "allow"
    assert (await log_in(adapter)).problem == ""
    pages = asked(openai)
    assert [page.get("prompt") for page in pages] == [None, "consent"]
    assert pages[1]["client_id"] == "oaiapp_00000001"
    assert (await ask(adapter)).text == "You said: Hello"
    await log_in(adapter)
    assert "prompt" not in asked(openai)[2]


async def test_the_redirect_is_only_for_this_login(make: Maker, openai: ChatGPTServer) -> None:
    """A wrong state, host, path or method does not end the attempt; the page does not contain the code."""
    seen: list[Any] = []

    def browser(page: str) -> None:
        back = sign_in(page)
        parts = urlsplit(back)
        own = f"http://{parts.netloc}"
        state = parse_qs(parts.query)["state"][0]
        seen.append(get(back.replace(state, "x" * len(state))))
        seen.append(get(back.replace(state, "%C3%A9")))
        seen.append(get(f"{own}/auth/callback"))
        seen.append(get(f"{own}/favicon.ico"))
        seen.append(get(back, Host="evil.example"))
        with socket.create_connection((parts.hostname, parts.port)) as raw:
            raw.sendall(b"\x16\x03\x01\x02\x00\r\n\r\n")
            raw.recv(100)
        with socket.create_connection((parts.hostname, parts.port)) as raw:
            raw.sendall(b"GET /auth/callback?" + b"x" * 40_000)
        seen.append(get(back))
        assert is_gone(back)

    done = await log_in(make(), browser=browser)
    assert done.user == "ada@example.com"
    assert [status for status, _, _ in seen] == [400, 400, 404, 404, 404, 200]
    _, headers, text = seen[-1]
    assert "Return to Neovim" in text
    assert "ac_" not in text
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert len(sent(openai, TOKEN)) == 1


def is_gone(address: str) -> bool:
    """Return whether the port is closed, or refuses a second callback."""
    try:
        return get(address)[0] == 404
    except OSError:
        return True


async def test_the_server_listens_on_this_machine_only(make: Maker) -> None:
    """The address is 127.0.0.1, with a separate port per attempt; it is closed afterwards."""
    ports: list[int] = []

    def browser(page: str) -> None:
        back = parse_qs(urlsplit(page).query)["redirect_uri"][0]
        parts = urlsplit(back)
        assert (parts.scheme, parts.hostname, parts.path) == ("http", "127.0.0.1", "/auth/callback")
        assert parts.port
        ports.append(parts.port)
        with socket.socket() as elsewhere, pytest.raises(OSError, match="refused"):
            elsewhere.connect(("127.0.0.2", parts.port))
        come_back(page)

    await log_in(make(), browser=browser)
    with socket.socket() as now, pytest.raises(OSError, match="refused"):
        now.connect(("127.0.0.1", ports[0]))


async def test_the_redirect_address_may_be_pasted(make: Maker) -> None:
    """When the browser is on another machine, the URL of the unreachable page can be pasted, even with line breaks."""
    adapter, loop = make(), asyncio.get_running_loop()
    told: list[str] = []

    async def take(address: str) -> None:
        adapter.login().take(address)

    def give(address: str) -> str:
        try:
            asyncio.run_coroutine_threadsafe(take(address), loop).result(10)
        except InputError as error:
            return str(error)
        return ""

    def browser(page: str) -> None:
        back = sign_in(page)
        path = back.partition("?")[0]
        told.extend(map(give, ("", "ac_0000", "https://chatgpt.com/?code=1", path, "http://[", "é" * 20_000)))
        told.append(give(back.replace("state=", "state=x")))
        told.append(give(f"  {back[:40]}\n{back[40:]} "))

    assert (await log_in(adapter, browser=browser)).user == "ada@example.com"
    *strange, other, taken = told
    assert all(
        "This is not the final address of ChatGPT's page. The correct address begins with http://127" in one
        for one in strange
    )
    assert "This address belongs to another login." in other
    assert taken == ""
    with pytest.raises(InputError, match="No login is in progress"):
        adapter.login().take("http://127.0.0.1:1/auth/callback?state=1")


CALLBACKS: dict[str, tuple[dict[str, str], str]] = {
    "no id": ({"client_id": ""}, "returned no code or client ID"),
    "the id of nobody": ({"client_id": "dynamic_agent_client"}, "returned no code or client ID"),
    "no id of theirs": ({"client_id": "a b"}, "returned no code or client ID"),
    "no code": ({"code": ""}, "returned no code or client ID"),
    "another issuer": ({"iss": "https://evil.example"}, "the redirect came from another issuer"),
    "trouble of theirs": ({"error": "server_error"}, r"OpenAI refused the login \(server_error\)"),
    "words of somebody": ({"error": "<b>call 555-1234</b>"}, "OpenAI refused the login. Nothing"),
}


@pytest.mark.parametrize("what", CALLBACKS)
async def test_a_mismatched_redirect_is_not_a_login(make: Maker, openai: ChatGPTServer, what: str) -> None:
    """The login ends with a one-sentence error, and no token is requested."""
    openai.sign_in.callback, told = CALLBACKS[what]
    with pytest.raises(AuthenticationFailed, match=told):
        await log_in(make())
    assert sent(openai, TOKEN) == []
    assert make.stored.session() is None


async def test_an_account_is_not_swapped(make: Maker, openai: ChatGPTServer) -> None:
    """A different registration or user than requested is rejected; another account is only used when asked for."""
    adapter = await make.logged_in()
    openai.sign_in.callback = {"client_id": "oaiapp_00000009"}
    with pytest.raises(AuthenticationFailed, match="returned a different client ID"):
        await log_in(adapter)
    openai.sign_in.callback = {}
    openai.sign_in.claims["sub"] = "somebody else"
    with pytest.raises(AuthenticationFailed, match=r"this is not the account ada@example.com"):
        await log_in(adapter)
    kept = make.stored.session()
    assert kept is not None
    assert kept.user == "ada@example.com"
    openai.sign_in.user = "grace@example.com"
    assert (await log_in(adapter, "new")).user == "grace@example.com"
    assert [page["client_id"] for page in asked(openai)][-1] == "dynamic_agent_client"
    del openai.sign_in.claims["sub"]
    openai.sign_in.user = "ada@example.com"
    assert (await log_in(adapter, "ada@example.com")).user == "ada@example.com"
    assert asked(openai)[-1]["client_id"] == "oaiapp_00000001"
    assert list(make.stored.accounts().names()) == ["ada@example.com", "grace@example.com"]
    with pytest.raises(InputError, match=r"There is no account 'nobody' here; the accounts are ada@example.com, grace"):
        await log_in(adapter, "nobody")


async def test_the_page_shows_the_account_and_the_alternatives(make: Maker, openai: ChatGPTServer) -> None:
    """Two workspaces with the same email address are two accounts."""
    adapter = await make.logged_in()
    await log_in(adapter, "new")
    pages: list[LoginPage] = []

    def show(page: LoginPage) -> None:
        pages.append(page)
        raise AuthenticationFailed("seen")

    for account in ("", "ada@example.com (2)", "new"):
        with pytest.raises(AuthenticationFailed, match="seen"):
            await adapter.login().run(show, account)
    names = ("ada@example.com", "ada@example.com (2)")
    assert [(page.account, page.accounts) for page in pages] == [
        (names[0], names[1:]),
        (names[1], names[:1]),
        ("", names),
    ]


CLAIMS: dict[str, tuple[dict[str, Any], str]] = {
    "of another issuer": ({"iss": "https://evil.example"}, "it is from another issuer"),
    "for another program": ({"aud": "oaiapp_other"}, "it was issued for another client"),
    "for several": ({"aud": ["oaiapp_00000001", "oaiapp_other"]}, "it was issued for another client"),
    "for nobody": ({"aud": []}, "it was issued for another client"),
    "by another party": ({"azp": "oaiapp_other"}, "it was issued for another client"),
    "expired": ({"exp": 1}, "it has expired; check this machine's clock"),
    "endless": ({"exp": None}, "it has expired"),
    "of another login": ({"nonce": "x"}, "it belongs to another login"),
    "without a nonce": ({"nonce": None}, "it belongs to another login"),
    "of nobody": ({"sub": ""}, "it does not name an account"),
}


@pytest.mark.parametrize("what", CLAIMS)
async def test_an_identity_for_another_client_is_not_used(make: Maker, openai: ChatGPTServer, what: str) -> None:
    """Its tokens are not stored."""
    claims, told = CLAIMS[what]
    openai.sign_in.claims |= claims
    with pytest.raises(AuthenticationFailed, match=told):
        await log_in(make())
    assert make.stored.session() is None


@pytest.mark.parametrize("token", [None, "", "x", "a.b", "a.b.c", "a.W10.c", "a.eyJzdWIiOiAxfQ.c.d", 5])
async def test_an_unreadable_identity_is_not_used(make: Maker, openai: ChatGPTServer, token: object) -> None:
    """An identity token of any unreadable shape is rejected."""
    openai.sign_in.token_answer = {"id_token": token}
    with pytest.raises(AuthenticationFailed, match="OpenAI sent an invalid ID token"):
        await log_in(make())
    assert make.stored.session() is None


async def test_the_audience_may_be_a_string_or_a_list_of_one(make: Maker, openai: ChatGPTServer) -> None:
    """Both occur."""
    openai.sign_in.audience_is_list = False
    assert (await log_in(make())).user == "ada@example.com"


ANSWERS: dict[str, dict[str, Any]] = {
    "no scope": {"scope": None},
    "no access token": {"access_token": None},
    "no refresh token": {"refresh_token": None},
    "a token of another type": {"token_type": "mac"},
    "no end": {"expires_in": None},
    "an end of words": {"expires_in": "3600"},
    "a token with a line break": {"access_token": "a\r\nb"},
}


@pytest.mark.parametrize("what", ANSWERS)
async def test_incomplete_tokens_are_not_a_login(make: Maker, openai: ChatGPTServer, what: str) -> None:
    """No part of them is stored."""
    openai.sign_in.token_answer = ANSWERS[what]
    with pytest.raises(MalformedReply):
        await log_in(make())
    assert make.stored.session() is None


async def test_a_refused_code_requires_a_new_login(make: Maker, openai: ChatGPTServer) -> None:
    """The error is in our own words; the next login reuses the registration."""
    openai.sign_in.failures = [failure(400, "secret words", code="invalid_grant")]
    adapter = make()
    with pytest.raises(AuthenticationFailed) as caught:
        await log_in(adapter)
    assert str(caught.value) == (
        "chatgpt: OpenAI refused the login (400, invalid_grant). Log in again with :CodeCompanion login chatgpt."
    )
    await log_in(adapter)
    assert asked(openai)[1]["client_id"] == "oaiapp_00000001"


@pytest.mark.parametrize("wrong", ["issuer", "endpoints_at"])
async def test_only_the_issuer_decides_where_codes_and_tokens_go(
    make: Maker, openai: ChatGPTServer, wrong: str
) -> None:
    """A discovery document from another issuer, or with endpoints elsewhere, is not used."""
    setattr(openai.sign_in, wrong, "https://evil.example")
    with pytest.raises(MalformedReply, match="returned no sign-in address"):
        await log_in(make())
    assert [seen.path for seen in openai.requests] == ["/.well-known/openid-configuration"]


def test_lookalike_addresses_are_not_the_issuers() -> None:
    """Scheme, host and port are compared, and user information before an @ does not deceive the check."""
    provider = Provider()
    assert provider.is_own_url("https://auth.openai.com/api/accounts/oauth/token")
    for address in (
        "http://auth.openai.com/token",
        "https://auth.openai.com.evil.example/token",
        "https://auth.openai.com@evil.example/token",
        "https://me@auth.openai.com/token",
        "https://auth.openai.com:8443/token",
        "https://[/token",
        None,
    ):
        assert not provider.is_own_url(address), address


async def test_tokens_are_sent_only_to_openai(make: Maker, openai: ChatGPTServer) -> None:
    """A configuration entry that would send them elsewhere, or unencrypted, is rejected."""
    with pytest.raises(
        ConfigError, match=r"may be sent only to https://api.openai.com/v1, not to https://proxy.example/v1"
    ):
        make(base_url="https://proxy.example/v1", options={"issuer": ""})
    with pytest.raises(ConfigError, match="expected https://"):
        make(options={"issuer": "http://login.example"})


async def test_a_stopped_login_changes_nothing(make: Maker, openai: ChatGPTServer) -> None:
    """No token is requested or stored, and the port is closed."""
    shown: asyncio.Future[LoginPage] = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(make().login().run(shown.set_result, ""))
    page = await shown
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(OSError, match="refused"):
        await asyncio.to_thread(come_back, page.url)
    assert make.stored.session() is None
    assert sent(openai, TOKEN) == []


async def test_the_wait_for_the_browser_has_a_limit(make: Maker, openai: ChatGPTServer, clock: Clock) -> None:
    """The login fails after ten minutes; the test uses a shorter limit."""
    login = ChatGPTLogin(entry(openai), Provider(openai.base), make.stored, clock=clock, life_s=0.05)
    told = "the browser did not return within 1 minutes?. Nothing was changed"
    with pytest.raises(AuthenticationFailed, match=told):
        await login.run(lambda page: None, "")


async def test_two_logins_at_once_both_complete(make: Maker, openai: ChatGPTServer) -> None:
    """Two Neovims that log in simultaneously use separate ports and share one installation id."""
    await asyncio.gather(log_in(make()), log_in(make()))
    assert len(set(openai.sign_in.hosts)) == 1
    assert (await ask(make())).text == "You said: Hello"


async def test_a_logout_ends_the_login_on_both_sides(make: Maker, openai: ChatGPTServer) -> None:
    """The token is revoked, the file deleted, the registration kept; a failed revocation is reported."""
    adapter = await make.logged_in()
    session = make.stored.session()
    assert session is not None
    forgotten = await adapter.login().forget()
    assert (forgotten.was_there, forgotten.note) == (True, "")
    assert openai.sign_in.revoked == [session.refresh_token]
    assert not make.stored.file.exists()
    assert list(make.stored.accounts().names()) == ["ada@example.com"]
    assert not (await adapter.login().forget()).was_there
    await log_in(adapter)
    openai.sign_in.issuer = "https://evil.example"
    assert "disconnect the app at https://chatgpt.com/settings" in (await make().login().forget()).note
    assert len(sent(openai, REVOKE)) == 1


async def test_a_login_that_cannot_be_stored_names_the_place(
    make: Maker, tmp_path: Path, openai: ChatGPTServer
) -> None:
    """If a file exists at the folder's path, the login fails before any request is sent."""
    make.folder.write_text("")
    with pytest.raises(InputError, match=f"Login not saved: cannot write to {make.folder}"):
        await log_in(make())
    assert openai.requests == []


@pytest.mark.parametrize("text", ["", "{}", "[1]", "\x00", "{" * 3000])
async def test_a_damaged_file_is_named(make: Maker, text: str) -> None:
    """The error names the file and a remedy; a new login repairs the token file."""
    await make.logged_in()
    make.stored.file.write_text(text)
    outcome = await ask(make())
    assert f"{make.stored.file} is damaged. Remove it and log in again." in str(outcome.error)
    await log_in(make())
    assert (await ask(make())).text == "You said: Hello"
    (make.folder / "chatgpt-accounts.json").write_text(text)
    with pytest.raises(InputError, match=r"chatgpt-accounts.json is damaged"):
        await log_in(make())


async def test_a_missing_network_is_reported(make: Maker, openai: ChatGPTServer) -> None:
    """The login fails with the same connection error as with any other adapter."""
    adapter = make()
    await openai.close()
    with pytest.raises(AdapterError, match=r"no connection to http://127.0.0.1"):
        await log_in(adapter)


def test_an_installation_has_one_permanent_id(tmp_path: Path) -> None:
    """The id is created once and does not depend on the machine."""
    one, two = StoredLogin(tmp_path / "a").accounts(), StoredLogin(tmp_path / "b").accounts()
    assert one == StoredLogin(tmp_path / "a").accounts()
    assert one.host_id != two.host_id
    assert one.host_id.startswith("urn:uuid:")
    assert msgspec.json.decode((tmp_path / "a/chatgpt-accounts.json").read_bytes())["host_id"] == one.host_id

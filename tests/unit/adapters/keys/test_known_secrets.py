"""Keys known to this host never appear in a tool result, in any encoding (lesson 44)."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.adapters.keys.known_secrets import KnownSecrets

KEY = "sk-ant-api03-Zq8vT1mWbR5xY2nK7pL4cD9fG6hJ3sA0"


def known(*values: str) -> KnownSecrets:
    secrets = KnownSecrets()
    secrets.learn(values)
    return secrets


@given(st.binary(max_size=7), st.binary(max_size=7))
def test_a_key_is_redacted_in_base64_at_any_offset(before: bytes, after: bytes) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        text = known(KEY).hide(encode(before + KEY.encode() + after).decode())
        inner = base64.b64encode(KEY.encode()).decode()
        assert "[hidden]" in text
        assert inner[4:-4] not in text
        assert len(text) <= len("[hidden]") + 28


@pytest.mark.parametrize("secret", ["a1~/+?é-key-with-signs", KEY])
def test_a_key_is_redacted_in_plain_hex_and_percent_form(secret: str) -> None:
    from urllib.parse import quote

    data = secret.encode()
    for form in (secret, data.hex(), data.hex().upper(), quote(secret, safe="")):
        assert known(secret).hide(f"a {form} b") == "a [hidden] b"


@pytest.mark.parametrize(("start", "end"), [(0, 30), (13, 36), (20, len(KEY)), (5, 28)])
def test_a_long_part_of_a_key_is_redacted(start: int, end: int) -> None:
    assert known(KEY).hide(f"<{KEY[start:end]}>") == "<[hidden]>"


def test_text_that_only_names_the_owner_of_a_key_stays() -> None:
    text = "keys begin with sk-ant-api03- and end in A0"
    assert known(KEY).hide(text) == text


@pytest.mark.parametrize("word", ["ollama", "postgres", "no-key-needed", "1234567890", "1234", "", "a b c 1 2 3"])
def test_a_value_that_may_be_any_word_is_not_redacted(word: str) -> None:
    """A local server often gets a made-up key; such a word must stay readable."""
    assert known(word).hide(f"run {word} now") == f"run {word} now"


def test_the_environment_is_known_by_names_and_passwords_in_addresses() -> None:
    secrets = KnownSecrets()
    given_values = {
        "MY_TOKEN": "tok-1234567890",
        "MINE": "key-of-adapter-7",
        "SSH_KEY_FILE": "/home/me/.ssh/id_ed25519",
        "POSTGRES_PASSWORD": "postgres",
        "DATABASE_URL": "postgres://me:pen%2Fcil99x@db/main",
        "KEYCLOAK_URL": "http://keycloak:8080",
        "HOME": "/home/me1234567",
        "AWS_REGION": "eu-central-1",
    }
    secrets.learn_environment(given_values, {"MINE"})
    text = " ".join(given_values.values())
    assert secrets.hide(text) == (
        "[hidden] [hidden] /home/me/.ssh/id_ed25519 postgres postgres://me:[hidden]@db/main"
        " http://keycloak:8080 /home/me1234567 eu-central-1"
    )
    assert secrets.hide("pen/cil99x") == "[hidden]"


def test_each_secret_part_of_headers_cookies_and_connection_strings_is_known() -> None:
    """Only the secrets are redacted; the words around them are kept."""
    secrets = KnownSecrets()
    given_values = {
        "OPENAI_CUSTOM_HEADERS": "X-Team: blue, X-Gate: gate1234pencil",
        "SESSION_COOKIE": "theme=dark; sid=cookie99pencil",
        "AZURE_CONNECTION_STRING": "Server=db;User Id=sa;Password=Pencil-4711",
        "SENTRY_DSN": "https://dsn12345pencil@sentry.example.org/3",
    }
    secrets.learn_environment(given_values)
    assert secrets.hide(" | ".join(given_values.values())) == (
        "X-Team: blue, X-Gate: [hidden] | theme=dark; sid=[hidden] | Server=db;User Id=sa;Password=[hidden]"
        " | https://[hidden]@sentry.example.org/3"
    )


def test_the_keys_are_not_in_the_objects_repr() -> None:
    assert repr(known(KEY)) == "KnownSecrets(1)"


def test_a_variable_that_only_sounds_like_a_key_redacts_nothing() -> None:
    """The host name `compass-01` stays readable, but the password of a proxy is still redacted."""
    secrets = KnownSecrets()
    given_values = {"COMPASS_HOST": "compass-01", "HTTPS_PROXY": "http://me:pencil-77@proxy:3128"}
    secrets.learn_environment(given_values, is_plain_name=given_values.__contains__)
    assert secrets.hide("compass-01 pencil-77") == "compass-01 [hidden]"


def test_a_key_with_invalid_utf8_is_redacted() -> None:
    """The key is redacted as it appears in `os.environ`, in tool output, and in percent and hexadecimal encoding."""
    hide = known("p\udce4ss-1234-abc").hide
    for shown in ("p\udce4ss-1234-abc", "p\ufffdss-1234-abc", "p%E4ss-1234-abc", "70e473732d313233342d616263"):
        assert hide(f"a {shown} b") == "a [hidden] b"


@pytest.mark.parametrize("before", ["", "X=", "LOOP_KEY=", "a line before it\nANTHROPIC_API_KEY="])
@pytest.mark.parametrize("columns", [60, 64, 76])
def test_wrapped_hexadecimal_and_base64_are_redacted_too(before: str, columns: int) -> None:
    """`xxd -p` breaks its lines after 60 letters, `base64` after 76."""
    data = f"{before}{KEY}\nplain=1\n".encode()
    shift = len(before.encode()) % 3
    in_base64 = base64.b64encode(b"\0" * shift + KEY.encode()).decode()[4:-4]
    for encoded, letters, piece in (
        (data.hex(), KEY.encode().hex(), 24),
        (base64.b64encode(data).decode(), in_base64, 16),
    ):
        lines = [encoded[at : at + columns] for at in range(0, len(encoded), columns)]
        assert letters in "".join(lines)
        shown = known(KEY).hide("\n".join(lines))
        for at in range(piece, len(letters) - 2 * piece):
            assert letters[at : at + 2 * piece] not in shown

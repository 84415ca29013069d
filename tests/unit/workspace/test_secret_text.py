"""Secrets are found by their text, and ordinary text is left alone."""

from __future__ import annotations

import pytest

from codecompanion.formats.package_table import package_table
from codecompanion.formats.text_files import decode
from codecompanion.workspace import secret_text
from codecompanion.workspace.project_files import FileText, shareable
from codecompanion.workspace.secret_text import (
    MAX_CHARS,
    find_secrets,
    hide_keys,
    hide_secrets,
    is_withheld,
    why_secret,
    without_secrets,
)
from codecompanion.workspace.secret_values import is_password, is_random, names_secret
from tests.secret_shapes import Fake, Shape, shapes

SHAPES = list(shapes(seed=7))
MISSED = {"rails master key", "key: alibaba key id", "fish and csh"}
"""A lone value without context (except its file name), a key without a digit, a password of a csh command."""


def is_held(shape: Shape) -> bool:
    """Return whether no value of the file would be sent unasked, judging only by its text."""
    text, why = without_secrets(shape.text, shape.path)
    return bool(why) or not any(value in text for value in shape.values)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.kind} {shape.path}")
def test_every_shape_of_the_formats_is_withheld(shape: Shape) -> None:
    assert is_held(shape) or shape.kind in MISSED


@pytest.mark.parametrize("shape", SHAPES[::7], ids=lambda shape: f"{shape.kind} {shape.path}")
def test_redaction_keeps_the_lines_and_a_second_run_finds_nothing(shape: Shape) -> None:
    hidden = hide_secrets(shape.text, shape.path)
    assert hidden.count("\n") == shape.text.count("\n")
    assert hide_secrets(hidden, shape.path) == hidden


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", 'password = get_password()\ntoken = os.environ["TOKEN"]\n'),
        ("a.py", 'api_key: str = "your-api-key-goes-here"\n'),
        ("a.ts", "const token: Token = nextToken(reader2);\nexport type SecretKey = 'a' | 'b';\n"),
        ("a.lua", 'local M = { token_count = 1234567890123456, key = "<C-x>", password_field = "password1" }\n'),
        ("a.yml", "password: ${DB_PASSWORD}\ntoken: {{ vault.token }}\nsecret: changeme123\n"),
        ("a.env", "API_KEY=\nSECRET=<your secret>\nTOKEN=xxxxxxxxxxxxxxxxxxxx1\n"),
        ("package-lock.json", '{"integrity": "sha512-9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a0b9c8d7e6f5a4b3c2d1e0f=="}'),
        ("a.md", "Set `OPENAI_API_KEY` to your key, such as sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.\n"),
        ("a.md", "AWS shows AKIA" + "IOSFODNN7EXAMPLE in its documentation.\n"),
        ("a.html", '<a href="https://example.com/?page=1&token_type=bearer">next</a>'),
        ("a.toml", 'public_key = "AAAAB3NzaC1yc2EAAAADAQABAAABAQC7"\nkey_file = "/etc/ssl/private2.key"\n'),
        ("a.py", "https://user:password@example.com/path\n"),
        ("a.c", "/* -----BEGIN CERTIFICATE----- */ int key_size = 4096;\n"),
    ],
)
def test_ordinary_lines_are_not_secrets(path: str, text: str) -> None:
    assert find_secrets(text, path) == ()


def test_data_is_withheld_as_a_whole_and_program_text_keeps_all_but_the_values() -> None:
    fake = Fake(2)
    line = f'db_password = "{fake.password()}"\nport = 80\n'
    text, why = without_secrets(line, "conf/app.toml")
    assert why == "password on line 1"
    text, why = without_secrets(line, "conf/app.py")
    assert (text, why) == ('db_password = "[hidden]"\nport = 80\n', "")
    assert is_withheld("a/b.yml")
    assert is_withheld("netrc-of-ann")
    assert not is_withheld("README.md")


def test_the_reason_names_kind_and_line_but_never_the_value() -> None:
    fake = Fake(3)
    key = fake.alnum(36, "gh" + "p_")
    text = f"first\nsecond {key}\nAPI_TOKEN={fake.hex(40)}\n"
    assert why_secret(text, "x.txt") == "GitHub token on line 2 and 1 more"


def test_a_truncated_private_key_is_redacted_from_both_sides() -> None:
    lines = Fake(4).pem("RSA PRIVATE" + " KEY").splitlines()
    head, tail = "\n".join(lines[:8]), "\n".join(lines[8:])
    for part in (head, tail):
        hidden = hide_secrets(part, "a.py")
        assert not any(line in hidden for line in lines[1:-1])


def test_a_long_text_is_searched_at_its_beginning_and_end() -> None:
    fake = Fake(5)
    begin, end = fake.alnum(36, "gh" + "p_"), fake.alnum(36, "gh" + "o_")
    lines = "some words of a log\n" * (2 * MAX_CHARS // 20)
    text = f"{begin}\n{lines}{end}\n"
    hidden = hide_secrets(text, "a.log")
    assert begin not in hidden
    assert end not in hidden


def test_command_output_loses_only_keys_that_name_their_provider() -> None:
    fake = Fake(6)
    key, block = fake.alnum(48, "s" + "k-"), fake.pem("EC PRIVATE" + " KEY", 120)
    hidden = hide_keys(f"ok {key}\npassword=Tiger12345!\n{block}")
    assert key not in hidden
    assert "password=Tiger12345!" in hidden
    assert block.splitlines()[1] not in hidden


@pytest.mark.parametrize(
    "name",
    "API_KEY apiKey client_secret DB_PASSWORD password1 npmAuthToken secret_key_base storePassword psk".split(),
)
def test_names_of_secrets_are_recognised(name: str) -> None:
    assert names_secret(name)


@pytest.mark.parametrize(
    "name", "token_count max_tokens tokenizer keyboard author public_key password_field key monkey tokenType".split()
)
def test_similar_names_are_not_secrets(name: str) -> None:
    assert not names_secret(name)


def test_random_values_are_distinguished_from_names() -> None:
    assert is_random(Fake(8).alnum(32))
    assert is_random(Fake(9).hex(32))
    assert not is_random("application/vnd.api.v2+json")
    assert not is_random("text-embedding-3-large-2024")
    assert not is_random("AsyncInputTokensWithRawResponse2")
    assert is_password(Fake(10).password())
    assert not is_password("production")


def test_every_pattern_names_its_source() -> None:
    table = package_table("workspace/secret_text.toml")
    for entry in (*table["keys"], *table["shapes"]):
        assert entry["source"].startswith(("https://", "http://")), entry["name"]


@pytest.mark.parametrize("name", ["password=", "APP_KEYS="])
@pytest.mark.parametrize("times", [10, 5_000])
def test_the_value_at_the_end_of_an_unbroken_run_of_names_is_found(name: str, times: int) -> None:
    text = name * times + " " + name + "kJ8sQz2LmNp4RtVx7WyB3cDf\n"
    assert "kJ8sQz2LmNp4RtVx7WyB3cDf" not in hide_secrets(text, "run.sh")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1"])
def test_the_encoding_of_a_file_hides_no_secret(encoding: str) -> None:
    token = Fake(8).alnum(36, "gh" + "p_")
    content = f"# für uns\ncontraseña: x\nTOKEN = '{token}'\n".encode(encoding)
    told = shareable(FileText(content, 1, len(content), ""), "a.py")
    assert decode(told.content).text == decode(content).text.replace(token, "[hidden]")
    assert "GitHub token" in shareable(FileText(content, 1, len(content), ""), "a.yml").why_not


def test_a_shape_is_searched_wherever_its_required_text_is() -> None:
    """This includes text between letters, which is only a part of a longer word."""
    rules = secret_text._rules()
    for need, word in rules.words_of_needs.items():
        words = "\n".join(secret_text._LETTERS.findall(f"if ab{need}cd else {need}"))
        assert word in words, need
    assert ("|",) in {needs for _, needs, _ in rules.shapes}


def test_a_searched_text_is_not_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kind counts, too: values without quotes are secrets in data."""
    searched, find = list[str](), secret_text._find

    def noted(text: str, kind: str) -> tuple[secret_text.FoundSecret, ...]:
        searched.append(kind)
        return find(text, kind)

    monkeypatch.setattr(secret_text, "_find", noted)
    monkeypatch.setattr(secret_text, "_found", {})
    monkeypatch.setattr(secret_text, "_KEPT_TEXTS", 2)
    text = "# a comment\n" * 100 + f"password = {Fake(10).password()}\n"
    assert find_secrets(text, "a.py") == find_secrets(text, "b.py") == ()
    assert find_secrets(text, "a.ini") == find_secrets(text, "a.ini") != ()
    assert searched == ["code", "data"]
    assert find_secrets(text.replace("comment", "remark"), "a.ini") != ()
    assert len(secret_text._found) == 1

"""Sources of API keys, and the errors if there is no key."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.keys.key_source import KeyReader, key_label, key_variable
from codecompanion.errors import MissingKey
from tests.patience import PATIENCE_S

SECRET = "planted-31337"


def entry(key: str) -> AdapterSettings:
    return AdapterSettings(name="openai", kind="openai", key=key)


def test_a_key_is_read_from_the_environment() -> None:
    """The configuration has the name of the variable."""
    assert KeyReader(environ={"OPENAI_API_KEY": f"{SECRET}\n"})(entry("OPENAI_API_KEY")) == SECRET


def test_no_key_is_read_if_none_is_configured() -> None:
    """This is the case for Ollama and other local servers."""
    assert KeyReader(environ={})(entry("")) == ""


def test_a_key_is_read_from_a_command() -> None:
    """The command is run through the shell, and the final newline of its output is removed."""
    reader = KeyReader(environ={**os.environ, "PART": SECRET})
    assert reader(entry('cmd: printf "%s\\r\\n" "$PART"')) == SECRET


def test_a_key_is_read_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`~` is the home folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "key").write_text(f"  {SECRET}\n")
    assert KeyReader(environ={})(entry("file:~/key")) == SECRET


def test_a_functions_key_takes_precedence() -> None:
    """The key was sent with the settings, or later with a change of the adapter."""
    reader = KeyReader({"openai": SECRET}, environ={"OPENAI_API_KEY": "other"})
    assert reader(entry("OPENAI_API_KEY")) == SECRET
    reader.give({"openai": "newer"})
    assert reader(entry("function")) == "newer"


@pytest.mark.parametrize("place", ["OPENAI_API_KEY", "file:{file}", "cmd:cat {file}", "function"])
def test_every_key_found_is_registered_for_redaction(tmp_path: Path, place: str) -> None:
    """This applies to any source, because a library's log line may contain the key."""
    (tmp_path / "key").write_text(SECRET)
    heard: list[str] = []
    environ = {**os.environ, "OPENAI_API_KEY": SECRET}
    given = {"openai": SECRET} if place == "function" else {}
    KeyReader(given, environ=environ, on_key=heard.append)(entry(place.format(file=tmp_path / "key")))
    assert set(heard) == {SECRET}


def test_only_a_variable_has_a_name_to_hide_from_commands() -> None:
    places = ("OPENAI_API_KEY", "file:~/key", "cmd:pass show openai", "function", "")
    assert [key_variable(entry(place)) for place in places] == ["OPENAI_API_KEY", "", "", "", ""]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("OPENAI_API_KEY", "the environment variable OPENAI_API_KEY is not set"),
        ("EMPTY", "the environment variable EMPTY is not set"),
        (f"cmd:echo {SECRET}x >&2; exit 3", "failed with exit status 3"),
        ("cmd:true", "printed nothing"),
        ("cmd:sleep 30", "did not finish within 0.2 s"),
        ("file:/nowhere/key", "the file /nowhere/key cannot be read (no such file or directory)"),
        ("file:/", "cannot be read (is a directory)"),
        ("function", "the function env.api_key returned no key"),
    ],
)
def test_a_missing_key_names_the_adapter_the_source_and_a_remedy(key: str, words: str) -> None:
    """The error never shows a value found there."""
    limit_s = 0.2 if "sleep" in key else PATIENCE_S
    reader = KeyReader(environ={"PATH": os.environ["PATH"], "EMPTY": " "}, command_limit_s=limit_s)
    with pytest.raises(MissingKey) as caught:
        reader(entry(key))
    text = str(caught.value)
    assert text.startswith("openai: no API key: ")
    assert words in text
    assert "adapters.http.openai" in text
    assert "or choose another adapter with ga." in text
    assert ("Set it" in text) is (key in ("OPENAI_API_KEY", "EMPTY"))
    assert text.startswith(f"openai: no API key: {caught.value.brief}") or "the environment variable" in text


def test_a_failing_commands_output_is_not_shown() -> None:
    """The output is neither in the error nor in the chained exceptions."""
    reader = KeyReader(environ={"PATH": os.environ["PATH"], "WORD": SECRET}, command_limit_s=1.0)
    for command in ("cmd:echo $WORD; echo $WORD >&2; exit 1", "cmd:echo $WORD; sleep 30"):
        with pytest.raises(MissingKey) as caught:
            reader(entry(command))
        assert SECRET not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("content", ["two\nlines", "schlüssel", "a\tb", "x" * 20_000])
def test_a_value_that_cannot_be_a_header_is_not_a_key(content: str, tmp_path: Path) -> None:
    """A whole file given by mistake must not end up in a header or in the error."""
    (tmp_path / "key").write_text(content)
    with pytest.raises(MissingKey) as caught:
        KeyReader(environ={})(entry(f"file:{tmp_path}/key"))
    assert content not in str(caught.value)
    assert "provided no valid key" in str(caught.value)


def test_a_binary_file_and_an_empty_one_are_not_keys(tmp_path: Path) -> None:
    """Each case has its own error."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "empty").write_bytes(b"\n")
    for name, words in (("binary", "is not a text file"), ("empty", "is empty")):
        with pytest.raises(MissingKey, match=words):
            KeyReader(environ={})(entry(f"file:{tmp_path}/{name}"))


def test_no_repr_shows_the_keys() -> None:
    """`repr` is used by debuggers and logs."""
    assert SECRET not in repr(KeyReader({"openai": SECRET}))


@pytest.mark.parametrize(
    ("key", "label"),
    [
        ("OPENAI_API_KEY", "OPENAI_API_KEY"),
        ("cmd: pass show openai ", "the command `pass show openai`"),
        ("file:~/key", "the file ~/key"),
        ("function", "the function env.api_key"),
        ("", ""),
    ],
)
def test_the_source_of_a_key_has_a_name(key: str, label: str) -> None:
    """The name is used in errors about refused keys."""
    assert key_label(entry(key)) == label


def test_keys_are_registered_before_an_adapter_needs_them(tmp_path: Path) -> None:
    """Lesson 44: otherwise a tool may find the keys first, in the file or the source a configuration function uses."""
    (tmp_path / "key").write_text(f"{SECRET}\n")
    heard: list[str] = []
    reader = KeyReader({"one": "given-1"}, environ={}, on_key=heard.append)
    reader.give({"two": "given-2"})
    reader.look_in_files([entry(f"file:{tmp_path}/key"), entry(f"file:{tmp_path}/none"), entry("PLAIN")])
    assert heard == ["given-1", "given-2", SECRET]


def test_a_literal_key_in_the_configuration_is_recognised_by_its_prefix() -> None:
    """A literal key is rejected as a missing variable, with a reference to the help on keys."""
    with pytest.raises(MissingKey) as caught:
        KeyReader(environ={})(entry("literal:sk-"))
    assert "env.api_key (“sk-…”) takes an environment variable, not the key itself" in str(caught.value)
    assert 'write api_key = "$OPENAI_API_KEY"' in str(caught.value)
    assert ":help codecompanion-keys" in str(caught.value)
    assert (key_label(entry("literal:sk-")), key_variable(entry("literal:sk-"))) == ("env.api_key", "")

"""The environment of a model's command: builds work, secrets are hidden (lesson 44)."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path

import pytest

from codecompanion.tools.commands.command_environment import (
    HiddenVariables,
    _fits,
    clean_environment,
    hidden_names,
    problem_with_pattern,
)
from codecompanion.workspace.secret_text import contains_secret
from tests.secret_shapes import Fake

SECRETS = {
    "OPENAI_API_KEY": "1",
    "openai_api_key": "1",
    "KEY_OF_MINE": "1",
    "GH_TOKEN": "1",
    "NPM_TOKEN_READ": "1",
    "CLIENT_SECRET": "1",
    "DB_PASSWORD": "1",
    "PASSPHRASE": "1",
    "GITLAB_PAT": "1",
    "AWS_SESSION": "1",
    "PGPASSWORD": "1",
    "MYSQL_PWD": "1",
    "GOOGLE_APPLICATION_CREDENTIALS": "/home/me/google.json",
    "COMPOSER_AUTH": "{}",
    "SENTRY_DSN": "https://abc@example.org/1",
    "DATABASE_URL": "postgres://me:pencil@db/main",
    "CACHE": "redis://:pencil@cache:6379",
    "PLAIN_NAME": "ghp_0123456789abcdefghij0123456789",
    "ANTHROPIC_CUSTOM_HEADERS": "x: y",
    "NVIM": "/run/user/1000/nvim.1.0",
    "OPENAI_CUSTOM_HEADERS": "X-Team: blue",
    "OTEL_EXPORTER_OTLP_HEADERS": "x-honeycomb-team=1",
    "SESSION_COOKIE": "1",
    "AZURE_STORAGE_CONNECTION_STRING": "1",
    "SQLAZURECONNSTR_Default": "1",
    "SLACK_WEBHOOK_URL": "1",
    "AZURE_STORAGE_SAS": "1",
    "MNEMONIC": "1",
    "APP_JWT": "1",
    "RAVEN_DSN": "1",
    "GIT_CONFIG_VALUE_0": "Authorization: Basic YTpi",
    "GIT_CONFIG_PARAMETERS": "'http.extraheader=x'",
    "HTTP_AUTHORIZATION": "Basic YTpi",
    "MY_SERVICE_PW": "pencil",
    "CREDS": "me:pencil",
    "JDBC_URL": "jdbc:postgresql://h/db?user=a&password=pencil",
    "ODBC": "Server=x;Uid=a;Pwd=pencil",
    "SETTINGS_JSON": '{"user": "a", "password": "pencil"}',
    "BW_SESSION": "pencil",
    "OP_SESSION_work": "pencil",
    "LDAP_BINDPW": "pencil",
    "DOCKER_AUTH_CONFIG": "{}",
}
NEEDED = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TMPDIR": "/tmp",
    "PWD": "/work",
    "OLDPWD": "/",
    "SSH_AUTH_SOCK": "/run/agent",
    "GIT_ASKPASS": "/usr/bin/ask",
    "GIT_SSH_COMMAND": "ssh -i ~/.ssh/other",
    "VIRTUAL_ENV": "/work/.venv",
    "CARGO_HOME": "/home/me/.cargo",
    "NVM_DIR": "/home/me/.nvm",
    "npm_config_cache": "/tmp/npm",
    "GOPATH": "/home/me/go",
    "JAVA_HOME": "/usr/lib/jvm",
    "CI": "true",
    "DATABASE_HOST": "db",
    "APP_URL": "http://localhost:8080/a@b",
    "HTTPS_PROXY": "http://me:pencil@proxy:3128",
    "TOKENIZERS_PARALLELISM": "false",
    "XDG_RUNTIME_DIR": "/run/user/1000",
    "XKB_DEFAULT_KEYBOARD": "us",
    "PROMPT_COMMAND": "echo $PWD; cd /tmp",
    "GIT_CONFIG_COUNT": "1",
    "AWS_CA_BUNDLE": "/etc/ssl/ca.pem",
    "AWS_REGION": "eu-central-1",
    "TOX_TESTENV_PASSENV": "HOME",
    "LOGIN_URL": "http://localhost/reset?password=&next=/",
}


@pytest.mark.parametrize("name", SECRETS)
def test_possible_secrets_are_left_out(name: str) -> None:
    assert hidden_names({**NEEDED, name: SECRETS[name]}, HiddenVariables()) == [name]


FAKE = Fake(20)
BY_CONTENT = {
    "CURL_OPTIONS": f"-H 'Authorization: Bearer {FAKE.word(40)}'",
    "NETRC": f"machine h login ann password {FAKE.password()}",
    "UPLOAD_ADDRESS": f"https://a.blob.core.windows.net/c?sv=1&sig={FAKE.alnum(43)}",
    "APP_CONFIG": f"client_secret: {FAKE.alnum(40)}",
    "HOOK": f"https://discord.com/api/webhooks/123456789012345678/{FAKE.alnum(68)}",
    "BOT": f"1234567890:AA{FAKE.word(33)}",
    "IDENTITY": FAKE.secret("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58, "AGE-SECRET" + "-KEY-1"),
    "FORGE": f"acme_live_{FAKE.alnum(44)}",
}


@pytest.mark.parametrize("name", BY_CONTENT)
def test_a_value_is_recognised_by_its_content_like_a_file(name: str) -> None:
    told = HiddenVariables(is_secret=contains_secret)
    assert hidden_names({**NEEDED, name: BY_CONTENT[name]}, told) == [name]


@pytest.mark.parametrize("name", NEEDED)
def test_variables_needed_by_builds_stay(name: str) -> None:
    assert clean_environment({name: NEEDED[name]}, Path("/ours"))[name] == NEEDED[name]


def test_variables_and_values_of_adapters_are_left_out() -> None:
    hidden = HiddenVariables(of_adapters=frozenset({"MY_PROVIDER"}), values=frozenset({"Team blue-horizon", "v1"}))
    given = {"MY_PROVIDER": "x", "TEAM": "blue-horizon", "VERSION": "v1", "PATH": "Team blue-horizon"}
    assert hidden_names(given, hidden) == ["MY_PROVIDER", "TEAM"]


def test_the_users_patterns_decide_and_hiding_takes_precedence() -> None:
    """An adapter's key is kept only by its exact name: `*` would expose unexpected variables."""
    given = {"PGHOST": "db", "PGPASSWORD": "x", "OPENAI_API_KEY": "k", "COMPANY": "c", "GH_TOKEN": "t"}
    of_adapters = frozenset({"OPENAI_API_KEY"})
    hidden = HiddenVariables(of_adapters=of_adapters, keep=("pghost", "GH_*", "*KEY*"), hide=("COMP*", "GH_TOKEN"))
    assert hidden_names(given, hidden) == ["COMPANY", "GH_TOKEN", "OPENAI_API_KEY", "PGPASSWORD"]
    assert hidden_names(given, HiddenVariables(of_adapters=of_adapters, keep=("OPENAI_API_KEY", "*"))) == []


def test_our_own_python_and_the_terminal_are_left_out() -> None:
    given = {"PYTHONPATH": "/ours:/theirs", "PYTHONSAFEPATH": "1", "EDITOR": "vim"}
    cleaned = clean_environment(given, Path("/ours"))
    assert (cleaned["PYTHONPATH"], cleaned["EDITOR"]) == ("/theirs", "false")
    assert "PYTHONSAFEPATH" not in cleaned
    assert "PYTHONPATH" not in clean_environment({"PYTHONPATH": "/ours"}, Path("/ours"))


@pytest.mark.parametrize(
    ("pattern", "is_good"), [("PG*", True), ("a_1?", True), ("", False), ("A=b", False), ("$A", False)]
)
def test_a_pattern_that_matches_no_valid_name_is_a_mistake(pattern: str, is_good: bool) -> None:
    assert (problem_with_pattern(pattern) == "") is is_good


@pytest.mark.parametrize("pattern", ["AB", "AB*", "*AB", "*AB*", "A*B", "*A*B*", "A?B", "*", "?*", "**AB"])
def test_a_pattern_matches_as_in_the_shell(pattern: str) -> None:
    """No regular expression is used: most patterns are a word, a prefix, a suffix or a part."""
    letters = ["".join(word) for length in range(6) for word in product("AB", repeat=length)]
    assert any(_fits(name, pattern) for name in letters)
    assert [name for name in letters if _fits(name, pattern) is not fnmatchcase(name, pattern)] == []

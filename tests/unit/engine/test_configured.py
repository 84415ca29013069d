"""Mistakes in the editor's configuration: the host starts, the default applies, every chat reports the mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from codecompanion import settings
from codecompanion.context.policy import policy_catalog
from codecompanion.engine.runtime import Runtime
from codecompanion.wire.events import ChatOpened, Notice
from codecompanion.wire.requests import GiveEnvironment, GiveSecrets, Hello, OpenChat, Snapshot


async def open_chats(root: Path, count: int = 1, **options: Any) -> list[Any]:
    """Greet a host with these chat options and open chats; return the events."""
    given = settings.defaults()
    given["chat"] |= options
    folders = {"data_dir": str(root / "data"), "cache_dir": str(root / "cache"), "log_path": str(root / "log")}
    told: list[Any] = []
    host = Runtime(told.append)
    await host.handle(Hello(settings=given, nvim="0.11", **folders))
    for number in range(count):
        await host.handle(OpenChat(chat=f"chat{number}", snapshot=Snapshot(cwd=str(root))))
    await host.aclose()
    return told


@pytest.mark.parametrize(
    ("options", "said", "used"),
    [
        (
            {"policies": {"mine": {"extends": "nope"}}, "policy": "mine"},
            "interactions.chat.opts.policies.mine.extends: there is no policy 'nope'",
            "codecompanion",
        ),
        (
            {"policies": {"mine": {"extends": "cowork", "compaction.triger": 0.8}}, "policy": "mine"},
            "interactions.chat.opts.policies.mine.compaction.triger: ",
            "cowork",
        ),
        (
            {"policy": "kodacod"},
            "interactions.chat.opts.policy: there is no policy 'kodacod'; expected kodacode",
            "codecompanion",
        ),
        (
            {"policy": "kodacod strict"},
            "interactions.chat.opts.policy: there is no policy 'kodacod strict'; expected kodacode",
            "codecompanion",
        ),
        (
            {"policy": "adaptive strict"},
            "interactions.chat.opts.policy: adaptive does not follow a document, so it has no strict form",
            "codecompanion",
        ),
    ],
)
async def test_a_chat_names_the_invalid_policy_and_continues_without_it(
    tmp_path: Path, options: dict[str, Any], said: str, used: str
) -> None:
    """K1: the key is named as in setup(), and the chat shows the whole sentence."""
    told = await open_chats(tmp_path, **options)
    assert [event.policy for event in told if isinstance(event, ChatOpened)] == [used]
    (notice,) = [event for event in told if isinstance(event, Notice)]
    assert notice.text.startswith(said)
    assert notice.text.endswith(f". Policy {used} is used instead.")
    assert notice.chat == "chat0"


async def test_every_chat_reports_missing_memory_exclusions(tmp_path: Path) -> None:
    """R-447: an invalid exclusion may let text through that must not be kept."""
    told = await open_chats(tmp_path, 2, memory={**settings.defaults()["chat"]["memory"], "exclude": ["("]})
    notices = [event for event in told if isinstance(event, Notice)]
    assert [notice.chat for notice in notices] == ["chat0", "chat1"]
    assert all("memory.exclude" in n.text and "Nothing is remembered" in n.text for n in notices)


async def test_without_mistakes_nothing_is_reported(tmp_path: Path) -> None:
    assert not [event for event in await open_chats(tmp_path) if isinstance(event, Notice)]


async def test_a_prefix_that_is_never_allowed_is_named_by_its_key(tmp_path: Path) -> None:
    """Otherwise the configuration would appear to allow it, although every such command asks."""
    given = settings.defaults()
    given["tools"]["entries"]["run_command"]["allowed_prefixes"] = ["git status", "python3.11", "a | b"]
    folders = {"data_dir": str(tmp_path), "cache_dir": str(tmp_path), "log_path": str(tmp_path / "log")}
    host = Runtime(lambda _: None)
    mistakes = cast(list[str], await host.handle(Hello(settings=given, nvim="0.11", **folders)))
    await host.aclose()
    key = "interactions.chat.tools.run_command.opts.allowed_prefixes"
    assert [mistake.partition(": ")[0] for mistake in mistakes] == [f"{key}[2]", f"{key}[3]"]
    assert mistakes[0].endswith("such as “python3.11 build.sh”. Such commands still need approval.")


async def test_an_impossible_variable_is_reported_with_its_key(tmp_path: Path) -> None:
    """R-502: nothing is silently ignored; the other names still apply."""
    given = settings.defaults()
    given["tools"]["entries"]["run_command"]["keep_variables"] = ["PGHOST", "A=b"]
    folders = {"data_dir": str(tmp_path), "cache_dir": str(tmp_path), "log_path": str(tmp_path / "log")}
    host = Runtime(lambda _: None)
    mistakes = cast(list[str], await host.handle(Hello(settings=given, nvim="0.11", **folders)))
    assert host.services.hidden_variables().keep == ("PGHOST",)
    await host.aclose()
    assert [mistake.partition(": ")[0] for mistake in mistakes] == [
        "interactions.chat.tools.run_command.opts.keep_variables[2]"
    ]


async def test_the_host_knows_its_keys_before_the_first_tool_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lesson 44: keys come from the environment, a file, a function or a header."""
    (tmp_path / "key").write_text("key-of-file-1\n")
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-variable-2")
    monkeypatch.setenv("GH_TOKEN", "token-of-forge-3")
    given = settings.defaults()
    given["adapters"]["openai"]["key"] = "OPENAI_API_KEY"
    given["adapters"]["mine"] = {"base_url": "http://localhost:1/v1", "key": f"file:{tmp_path}/key"}
    given["adapters"]["mine"]["headers"] = {"X-Api-Key": "key-of-header-4", "Accept": "application/json5"}
    folders = {"data_dir": str(tmp_path), "cache_dir": str(tmp_path), "log_path": str(tmp_path / "log")}
    host = Runtime(lambda _: None)
    await host.handle(Hello(settings=given, nvim="0.11", secrets={"other": "key-of-function-5"}, **folders))
    await host.handle(GiveSecrets(secrets={"later": "key-of-function-6"}))
    hide = host.services.known_secrets.hide
    await host.aclose()
    text = "1 key-of-file-1 key-of-variable-2 token-of-forge-3 key-of-header-4 key-of-function-5 key-of-function-6"
    assert hide(text) == "1" + " [hidden]" * 6
    assert hide("application/json5") == "application/json5"


async def test_contradictory_options_stop_their_policy(tmp_path: Path) -> None:
    """R-305: every chat still opens; one sentence explains it."""
    both = {"compaction_threshold": 0.5, "compaction.trigger": 0.6, "compaction_target_threshold": 0.4}
    told = await open_chats(tmp_path, 1, policy="kodacode", context_management=both)
    notices = [event.text for event in told if isinstance(event, Notice)]
    assert len(notices) == 1
    assert "context_management.compaction_threshold: 0.5, but" in notices[0]
    assert notices[0].endswith(
        "both set the same option; expected only one of them."
        " Policy kodacode is stopped; codecompanion is used instead."
    )


async def test_secrets_in_the_editors_environment_are_known_and_redacted(tmp_path: Path) -> None:
    """Lesson 44: the host's own environment has no key; received values, and later changes, are redacted as well."""
    given = settings.defaults()
    given["adapters"]["openai"]["key"] = "MY_OPENAI"
    folders = {"data_dir": str(tmp_path), "cache_dir": str(tmp_path), "log_path": str(tmp_path / "log")}
    host = Runtime(lambda _: None)
    await host.handle(Hello(settings=given, nvim="0.11", environment={"MY_OPENAI": "pencil-of-hello-1"}, **folders))
    assert host.services.environment["MY_OPENAI"] == "pencil-of-hello-1"
    assert host.services.hidden_variables().hides("MY_OPENAI", "")
    await host.handle(GiveEnvironment(changed={"MY_OPENAI": "pencil-of-later-2", "GH_TOKEN": "pencil-of-forge-3"}))
    assert host.services.environment["MY_OPENAI"] == "pencil-of-later-2"
    await host.handle(GiveEnvironment(gone=("MY_OPENAI",)))
    hide, environment = host.services.known_secrets.hide, host.services.environment
    await host.aclose()
    assert "MY_OPENAI" not in environment
    assert hide("pencil-of-hello-1 pencil-of-later-2 pencil-of-forge-3") == " ".join(["[hidden]"] * 3)
    assert "pencil" not in repr(host.services)


MINE = {"extends": "cowork", "description": "Mine."}


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ({"extends": "kodacode", "stage": ["x"]}, "policies.wrong.stage[1]: got 'x'; expected a stage"),
        (
            {"extends": "codecompanion", "stage": [{"id": "a", "step": {"use": "clear_tool_results"}}]},
            "policies.wrong.stage[1].step: got a table; expected a list of steps",
        ),
        (
            {"extends": "codecompanion", "stage": [{"id": "a", "tier": {"id": "b"}}]},
            "policies.wrong.stage[1].tier: got a table; expected a list of tiers",
        ),
        ({"extends": ["codecompanion"]}, "policies.wrong.extends: "),
        ({"extends": "codecompanion", "recovery": 5}, "policies.wrong.recovery: got a whole number; expected a table"),
        ({"extends": "codecompanion", "stage": 7}, "policies.wrong.stage: got 7; expected a list of stages"),
    ],
)
async def test_an_invalid_policy_affects_only_itself(tmp_path: Path, wrong: dict[str, Any], key: str) -> None:
    """K1: other chats, other policies and the greeting work; chats that chose this policy get the one it extends."""
    told = await open_chats(tmp_path, policy="mine", policies={"mine": MINE, "wrong": wrong})
    assert [event.policy for event in told if isinstance(event, ChatOpened)] == ["mine"]
    (notice,) = [event for event in told if isinstance(event, Notice)]
    assert f"interactions.chat.opts.{key}" in notice.text
    assert notice.text.endswith(". The other policies are not affected.")


@pytest.mark.parametrize(("base", "used"), [("kodacode", "kodacode"), ("mine", "mine"), ("nobody", "codecompanion")])
async def test_an_invalid_chosen_policy_is_replaced_by_the_one_it_extends(tmp_path: Path, base: str, used: str) -> None:
    wrong = {"extends": base, "stage": "x"}
    told = await open_chats(tmp_path, policy="wrong", policies={"mine": MINE, "wrong": wrong})
    assert [event.policy for event in told if isinstance(event, ChatOpened)] == [used]
    (notice,) = [event for event in told if isinstance(event, Notice)]
    assert notice.text.endswith(f". Policy {used} is used instead.")


async def test_an_invalid_table_under_a_built_in_name_is_replaced_by_the_built_in_policy(tmp_path: Path) -> None:
    told = await open_chats(tmp_path, policy="cowork", policies={"cowork": {"stage": "x"}})
    assert [event.policy for event in told if isinstance(event, ChatOpened)] == ["cowork"]
    (notice,) = [event for event in told if isinstance(event, Notice)]
    assert notice.text.endswith(". The built-in cowork is used instead.")


async def test_a_policy_for_one_adapter_that_does_not_exist_leaves_the_others_their_own(tmp_path: Path) -> None:
    told = await open_chats(tmp_path, policy="cowork", adapter_policies={"openai": "nope"})
    assert [event.policy for event in told if isinstance(event, ChatOpened)] == ["cowork"]
    (notice,) = [event for event in told if isinstance(event, Notice)]
    assert notice.text.endswith(". Policy cowork is used for openai instead.")


async def test_an_invalid_option_is_dropped_and_the_others_apply(tmp_path: Path) -> None:
    wrong = {"editing": {"trigger": "soon", "keep_cycles": 1}}
    told = await open_chats(tmp_path, context_management=wrong)
    (notice,) = [event for event in told if isinstance(event, Notice)]
    assert notice.text.startswith("interactions.chat.opts.context_management.editing.trigger: 'soon' is not a trigger")


async def test_each_contradictory_option_is_reported(tmp_path: Path) -> None:
    """R-305: all of them are reported at once, and the chat opens."""
    options = {"compaction_threshold": 0.5, "compaction": {"trigger": 0.6}, "compaction_target_threshold": 0.7}
    told = await open_chats(tmp_path, policy="kodacode", context_management=options)
    notices = [event.text for event in told if isinstance(event, Notice)]
    assert [text.split(".context_management.")[1].split(":")[0] for text in notices] == [
        "compaction_threshold",
        "compaction_target_threshold",
    ]
    assert [event.policy for event in told if isinstance(event, ChatOpened)] == ["codecompanion"]


async def test_a_strict_policy_may_be_configured(tmp_path: Path) -> None:
    """It is chosen by name, by adapter or as an option.

    An option that the strict policy lacks is reported as unused.
    """
    strict = {"strict": True, "compaction": {"trigger": 0.7}}
    for options in (
        {"policy": "cowork strict"},
        {"adapter_policies": {"offline": "cowork strict"}},
        {"policy": "cowork", "context_management": strict},
    ):
        told = await open_chats(tmp_path, **options)
        assert [event.policy for event in told if isinstance(event, ChatOpened)] == ["cowork strict"], options
        assert [event for event in told if isinstance(event, Notice)] == []
    told = await open_chats(tmp_path, policy="cowork_chat", context_management=strict)
    (notice,) = [event for event in told if isinstance(event, Notice)]
    assert notice.text == "Policy cowork_chat strict does not use these settings: compaction.trigger."


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (1, "1 would mean one token"),
        (0, "0 is not positive; false turns the stage off"),
        (-5, "-5 is negative"),
        (2.5, "2.5 is not a whole number of tokens"),
        (True, "true is not a trigger; false turns the stage off"),
        ("banana%", "'banana%' is not a trigger"),
        ("0.85", "'0.85' is not a trigger"),
        ("100%", "100% is not between 0 % and 100 %"),
        ("0%", "0% is not between 0 % and 100 %"),
    ],
)
async def test_a_trigger_that_means_nothing_is_refused_with_the_reason(tmp_path: Path, value: Any, reason: str) -> None:
    """R-502: nothing is clamped (lesson 13); the policy's own value stays in force."""
    told = await open_chats(tmp_path, context_management={"editing": {"trigger": value}})
    (notice,) = [event for event in told if isinstance(event, Notice)]
    assert notice.text.startswith(f"interactions.chat.opts.context_management.editing.trigger: {reason}")
    assert notice.text.endswith("The policy's own value is used instead.")


async def test_unvalidated_settings_never_keep_the_host_from_answering(tmp_path: Path) -> None:
    """Each unusable part is dropped separately and reported with its key path."""
    folders = {"data_dir": str(tmp_path), "cache_dir": str(tmp_path), "log_path": str(tmp_path / "log")}
    given = {
        "chat": {"policy": "cowork", "budget": "much", "nonsense": 1},
        "adapters": {"mine": {"kind": "smoke"}, "other": 5},
        "models": {"m": {"context_window": "x"}},
        "tools": {"entries": {"read_file": {"timeout_s": "x"}, "nope": {}}},
        "rules": [1],
        "log_level": "LOUD",
    }
    told: list[Any] = []
    host = Runtime(told.append)
    mistakes = await host.handle(Hello(settings=given, nvim="0.11", **folders))
    await host.handle(OpenChat(chat="chat", snapshot=Snapshot(cwd=str(tmp_path))))
    await host.aclose()
    assert [event.policy for event in told if isinstance(event, ChatOpened)] == ["cowork"]
    keys = [mistake.partition(": ")[0] for mistake in cast(list[str], mistakes)]
    assert keys == [
        "adapters.http.mine.kind",
        "adapters.http.other",
        "interactions.chat.opts.budget",
        "interactions.chat.opts.nonsense",
        "opts.log_level",
        "models.m.context_window",
        "rules.opts.chat",
        "interactions.chat.tools.nope",
        "interactions.chat.tools.read_file.timeout_s",
    ]


async def test_a_host_without_options_reads_only_the_active_policy(tmp_path: Path) -> None:
    """Reading a policy costs 5 ms of CPU; others are read if they are chosen, or if options are given for all."""
    policy_catalog._built_in.cache_clear()
    await open_chats(tmp_path)
    assert policy_catalog._built_in.cache_info().currsize == 1


@pytest.mark.parametrize(
    ("embedding", "said"),
    [
        ({"url": "http://127.0.0.1:9/v1"}, "context.embedding.model: expected the name of an embedding model"),
        ({"model": "m"}, "context.embedding.url: expected url="),
        ({"url": "http://127.0.0.1:9", "model": "m", "onnx": "f"}, "context.embedding.onnx: set either `url` or"),
        ({"onnx": "/models/minilm"}, ""),
        ({}, ""),
    ],
)
async def test_vectors_that_cannot_be_computed_are_reported_and_words_decide(
    tmp_path: Path, embedding: dict[str, Any], said: str
) -> None:
    given = settings.defaults()
    given["context"]["embedding"] = embedding
    folders = {
        "data_dir": str(tmp_path / "data"),
        "cache_dir": str(tmp_path / "cache"),
        "log_path": str(tmp_path / "l"),
    }
    host = Runtime(lambda event: None)
    await host.handle(Hello(settings=given, nvim="0.11", **folders))
    mistakes = " ".join(host.services.mistakes)
    assert (host.services.vectors is not None) == (embedding == {"onnx": "/models/minilm"})
    assert said in mistakes
    assert mistakes.endswith("Code is found by keyword search only." if said else "")
    await host.aclose()

"""A chat's policy: as configured, by adapter, or chosen with `/policy`; and user-defined policies (K1, R-503)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from codecompanion.adapters.base import AdapterSettings
from codecompanion.errors import ConfigError
from codecompanion.session.actions.choose_policy import choose_policy, list_policies
from codecompanion.wire.events import Notice, PolicyChanged
from tests.unit.session.fakes import Bench, ScriptedAdapter, says

MINE = {"extends": "codecompanion", "description": "Early.", "editing.trigger": 0.3}


def configure(bench: Bench, **fields: Any) -> None:
    services = bench.services
    chat = msgspec.structs.replace(services.settings.chat, **fields)
    services.settings = msgspec.structs.replace(services.settings, chat=chat)


async def test_a_chat_keeps_the_policy_it_chose(tmp_path: Path) -> None:
    """The chosen policy survives a restart; the editor is notified, and the triggers are those of the policy."""
    bench = Bench(tmp_path, ScriptedAdapter("first", [says("hi")]))
    configure(bench, policies={"mine": MINE})
    session = await bench.open()
    assert session.control.policy.name == "codecompanion"
    await choose_policy(session, "mine")
    assert session.control.policy.stages[0].trigger.at == 0.3
    assert bench.of(PolicyChanged)[-1].policy == "mine"
    chosen = {row["name"]: row["current"] for row in list_policies(session.control)}
    assert chosen["mine"] is True
    assert chosen["codecompanion"] is False
    reopened = await bench.resume()
    assert reopened is not None
    assert reopened.control.policy.name == "mine"
    await choose_policy(reopened, "")
    assert reopened.control.policy.name == "codecompanion"


async def test_a_missing_policy_is_replaced_and_reported(tmp_path: Path) -> None:
    """If the policy is no longer configured when the chat is reopened, the chat uses the default one."""
    bench = Bench(tmp_path, ScriptedAdapter("first", []))
    configure(bench, policies={"mine": MINE})
    await choose_policy(await bench.open(), "mine")
    configure(bench, policies={})
    reopened = await bench.resume()
    assert reopened is not None
    assert reopened.control.policy.name == "codecompanion"
    assert any("'mine' is no longer configured" in notice.text for notice in bench.of(Notice))


async def test_an_unknown_policy_changes_nothing(tmp_path: Path) -> None:
    """The error names the available policies."""
    bench = Bench(tmp_path, ScriptedAdapter("first", []))
    session = await bench.open()
    with pytest.raises(ConfigError, match="codecompanion"):
        await choose_policy(session, "codecompanio")
    assert session.control.policy.name == "codecompanion"
    assert bench.of(PolicyChanged) == []


async def test_an_adapter_may_have_a_policy_of_its_own(tmp_path: Path) -> None:
    """The policy follows the adapter; the chat's own choice takes precedence."""
    bench = Bench(tmp_path, ScriptedAdapter("first", []))
    bench.services.adapters.add(
        ScriptedAdapter("other", []), AdapterSettings(name="other", base_url="", kind="offline")
    )
    configure(bench, policies={"mine": MINE}, adapter_policies={"other": "mine"})
    session = await bench.open()
    await session.use_model("other", "")
    assert session.control.policy.name == "mine"
    await choose_policy(session, "codecompanion")
    assert session.control.policy.name == "codecompanion"
    await session.use_model("first", "")
    await session.use_model("other", "")
    assert session.control.policy.name == "codecompanion"


async def test_settings_made_for_another_policy_are_reported_as_unused(tmp_path: Path) -> None:
    """Nothing is silently ignored; settings that both policies have still apply."""
    bench = Bench(tmp_path, ScriptedAdapter("first", []))
    configure(bench, context_management={"editing": {"trigger": 0.4}, "enabled": False})
    session = await bench.open()
    assert session.control.policy.stages[0].trigger.at == 0.4
    without_options = msgspec.structs.replace(session.control.policy, name="bare", options={})
    assert bench.services.ignored_settings(without_options) == ("editing",)
    assert bench.services.ignored_settings(session.control.policy) == ()
    session.control.policy = without_options
    session.control.tell_ignored_settings()
    assert bench.of(Notice)[-1].text == "Policy bare does not use these settings: editing."


async def test_a_policy_may_name_another_for_chats_without_tools(tmp_path: Path) -> None:
    """R-460: the policy of such a chat follows from its tools being off."""
    bench = Bench(tmp_path, ScriptedAdapter("first", []))
    services = bench.services
    base = services.policy({})
    assert base.without_tools == ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "codecompanion.session.stopped_policies.load_policy",
            lambda name, *rest: msgspec.structs.replace(
                base, name=name, without_tools="" if name == "plain" else "plain"
            ),
        )
        assert services.policy({}).name == "codecompanion"
        off = msgspec.structs.replace(services.settings.tools, enabled=False)
        services.settings = msgspec.structs.replace(services.settings, tools=off)
        assert services.policy({}).name == "plain"


async def test_a_chat_may_use_the_strict_form_of_a_policy(tmp_path: Path) -> None:
    """The strict form is offered, chosen, named, and still active after a restart."""
    bench = Bench(tmp_path, ScriptedAdapter("first", [says("hi")]))
    session = await bench.open()
    names = [row["name"] for row in list_policies(session.control)]
    assert ("codebuddy strict" in names, "adaptive strict" in names) == (True, False)
    await choose_policy(session, "codebuddy strict")
    assert bench.of(PolicyChanged)[-1].policy == "codebuddy strict"
    reopened = await bench.resume()
    assert reopened is not None
    assert reopened.control.policy.name == "codebuddy strict"
    with pytest.raises(ConfigError, match="adaptive does not follow a document"):
        await choose_policy(reopened, "adaptive strict")
    assert reopened.control.policy.name == "codebuddy strict"


async def test_all_chats_may_be_strict(tmp_path: Path) -> None:
    """The option applies to every policy except our own; there it is reported as having no effect."""
    bench = Bench(tmp_path, ScriptedAdapter("first", []))
    configure(bench, context_management={"strict": True})
    session = await bench.open()
    assert session.control.policy.name == "codecompanion strict"
    await choose_policy(session, "cowork")
    assert session.control.policy.name == "cowork strict"
    await choose_policy(session, "adaptive")
    assert session.control.policy.name == "adaptive"
    assert (
        bench.of(Notice)[-1].text
        == "Policy adaptive does not follow a document: context_management.strict has no effect."
    )
    off = msgspec.structs.replace(bench.services.settings.tools, enabled=False)
    bench.services.settings = msgspec.structs.replace(bench.services.settings, tools=off)
    assert bench.services.policy({}, "cowork").name == "cowork_chat strict"


async def test_strict_forms_are_distinguishable_and_errors_name_the_typed_text(tmp_path: Path) -> None:
    """A list must not have two identical rows, and an error must not name a key that no configuration has."""
    session = await Bench(tmp_path, ScriptedAdapter("first", [])).open()
    descriptions = [row["description"] for row in list_policies(session.control) if "strict" not in row["name"]]
    (strict,) = {row["description"] for row in list_policies(session.control) if "strict" in row["name"]}
    assert strict not in descriptions
    with pytest.raises(ConfigError, match=r"^policy: adaptive does not follow a document, so it has no strict form$"):
        await choose_policy(session, "adaptive strict")
    await choose_policy(session, " codebuddy   strict ")
    assert session.control.policy.name == "codebuddy strict"


async def test_a_strict_policy_of_the_users_own_keeps_its_description(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ScriptedAdapter("first", []))
    configure(bench, policies={"mine": {**MINE, "strict": True}})
    session = await bench.open()
    assert {row["name"]: row["description"] for row in list_policies(session.control)}["mine strict"] == "Early."

"""Stops invalid policies and those with an invalid option, and shows the user the invalid key (K1, R-347).

An invalid user-defined policy is replaced by the policy it extends, a policy with an invalid option by the default
policy. The default policy is never stopped: it continues without the invalid option.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from codecompanion.context.policy.hints import nearest
from codecompanion.context.policy.policy import Policy
from codecompanion.context.policy.policy_catalog import known_names, load_policy, policy_names
from codecompanion.context.policy.policy_options import flatten, option_names, with_known_options, with_options
from codecompanion.context.policy.strict import SUFFIX, strict
from codecompanion.engine.policy_files import PolicyFiles, with_file_location
from codecompanion.errors import ConfigError
from codecompanion.session.services import OPTIONS_KEY, POLICY_KEY, Services
from codecompanion.session.stopped_policies import POLICIES_KEY, StoppedPolicy, default_policy, running_policy

_CHAT_KEY = OPTIONS_KEY.rpartition(".")[0]
_OF_STYLE = ("response_style", "context_packet")
"""Chat options used by policies with their own response style (R-347, R-350)."""


def stop_policies(services: Services, files: PolicyFiles, wrong_options: Sequence[str]) -> None:
    """Stop all invalid policies; `wrong_options`: the editor's sentences about invalid policy options."""
    _stop_wrong_tables(services, files)
    _stop_wrong_names(services)
    _stop_wrong_options(services, wrong_options)


def _stop_wrong_tables(services: Services, files: PolicyFiles) -> None:
    """Replace each invalid user policy with the policy it extends."""
    chat = services.settings.chat
    wrong: dict[str, tuple[str, str]] = {}
    for name in chat.policies:
        key = f"{POLICIES_KEY}.{name}"
        try:
            load_policy(name, chat.policies, POLICIES_KEY)
        except ConfigError as error:
            told = with_file_location(str(error), key, files.paths.get(name))
            wrong[name] = told, error.key.removeprefix(f"{key}.")
        except Exception as error:
            wrong[name] = f"{key}: {services.report_bug(error)}", "internal error"
    good = {name: table for name, table in chat.policies.items() if name not in wrong}
    for name, (problem, short) in wrong.items():
        instead = _nearest_good(name, chat.policies, good)
        used = f"The built-in {instead}" if instead == name else f"Policy {instead}"
        use = f"{used} is used instead." if name in _chosen(services) else _NOT_AFFECTED
        services.mistakes.append(f"{problem}. {use}")
        services.stopped[name] = StoppedPolicy(instead, short, problem)
    _use(services, policies=good)


_NOT_AFFECTED = "The other policies are not affected."


def _chosen(services: Services) -> tuple[str, ...]:
    """Return the policies that the configuration names, the most used first."""
    chat = services.settings.chat
    return (chat.policy, *chat.adapter_policies.values())


def _nearest_good(name: str, tables: Mapping[str, Any], good: Mapping[str, Any]) -> str:
    """Return the nearest valid policy that an invalid one extends, directly or indirectly, or else the default."""
    seen: set[str] = set()
    while name in tables and name not in good and name not in seen:
        seen.add(name)
        table = tables[name]
        base = table.get("extends") if isinstance(table, Mapping) else None
        if name in policy_names() and base in (None, name):
            return name
        name = base if isinstance(base, str) else ""
    return name if name in good or name in policy_names() else default_policy()


def _stop_wrong_names(services: Services) -> None:
    """Replace unknown policy names in the configuration."""
    chat = services.settings.chat
    if problem := _problem_of(services, chat.policy):
        instead = default_policy()
        services.mistakes.append(f"{problem}. Policy {instead} is used instead.")
        services.stopped[chat.policy] = StoppedPolicy(instead, "no such policy", problem)
    for adapter, name in chat.adapter_policies.items():
        if problem := _problem_of(services, name):
            instead = running_policy(services.settings, services.stopped, chat.policy).name
            services.mistakes.append(f"{problem}. Policy {instead} is used for {adapter} instead.")
            services.stopped[name] = StoppedPolicy(instead, "no such policy", problem)


def _problem_of(services: Services, name: str) -> str:
    """Return the problem with this policy name, or "" if there is none or it is already reported."""
    own = services.settings.chat.policies
    names = known_names(own)
    if name in names or name in services.stopped:
        return ""
    if name.removesuffix(SUFFIX) not in names:
        return str(ConfigError(POLICY_KEY, f"there is no policy {name!r}", nearest(name, names)))
    try:
        strict(load_policy(name.removesuffix(SUFFIX), own, POLICIES_KEY), POLICY_KEY)
    except ConfigError as error:
        return str(error)
    return ""


def _stop_wrong_options(services: Services, wrong_options: Sequence[str]) -> None:
    """Stop the policies that have an option with an invalid value, and drop that value."""
    given = services.settings.chat.context_management
    if not given and not wrong_options:
        return  # reading every policy takes 30 ms
    policies = services.policies()
    known = tuple({name for policy in policies for name in option_names(policy)})
    flat = flatten(given, known)
    problems: dict[str, str] = {}
    stopped: dict[str, list[str]] = {}
    for sentence in wrong_options:
        option = sentence.partition(":")[0].removeprefix(f"{_CHAT_KEY}.").removeprefix("context_management.")
        problems[option] = sentence
        stopped[option] = [policy.name for policy in policies if _reads(policy, option)]
    for policy in policies:
        for option, problem in _problems_of_options(policy, flat):
            problems.setdefault(option, problem)
            stopped.setdefault(option, []).append(policy.name)
    for option, problem in problems.items():
        _stop(services, stopped[option], option, problem)
    if problems:
        _use(services, context_management={name: value for name, value in flat.items() if name not in problems})


def _reads(policy: Policy, option: str) -> bool:
    """Return whether a policy uses an option, or a part of it."""
    names = (*option_names(policy), *(_OF_STYLE if policy.response_style != "default" else ()))
    option = "response_style" if option == "sessions.response_style" else option
    return any(option == name or option.startswith(f"{name}.") for name in names)


def _problems_of_options(policy: Policy, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each option that a policy cannot use, with the reason: first single options, then contradictory ones."""
    wrong: set[str] = set()
    for name in given:
        if name in option_names(policy):
            try:
                with_options(policy, {name: given[name]}, OPTIONS_KEY)
            except ConfigError as error:
                wrong.add(name)
                yield name, str(error)
    for _ in given:  # an option may contradict two others
        try:
            with_known_options(policy, {name: given[name] for name in given if name not in wrong}, OPTIONS_KEY)
            return
        except ConfigError as error:
            name = error.key.removeprefix(f"{OPTIONS_KEY}.")
            wrong.add(name)
            yield name, str(error)


def _stop(services: Services, names: Sequence[str], option: str, problem: str) -> None:
    """Stop these policies, except the default, because of one option; report those that a chat would have used."""
    default = default_policy()
    others = [name for name in names if name not in (default, default + SUFFIX)]
    used = [running_policy(services.settings, services.stopped, name).name for name in _chosen(services)]
    for name in others:
        services.stopped.setdefault(name, StoppedPolicy(default, option, problem))
    affected = [name for name in dict.fromkeys(used) if name in services.stopped]
    if affected:
        use = f"{_are_stopped(affected)}; {default} is used instead."
    elif others and default not in names:
        use = f"{_are_stopped([name for name in others if not name.endswith(SUFFIX)])}."
    else:
        use = "The policy's own value is used instead."
    end = "" if problem.endswith((".", "?")) else "."
    services.mistakes.append(f"{problem}{end} {use}")


def _are_stopped(names: Sequence[str]) -> str:
    return f"Policy {names[0]} is stopped" if len(names) == 1 else f"Policies {' and '.join(names)} are stopped"


def _use(services: Services, **changes: Any) -> None:
    chat = msgspec.structs.replace(services.settings.chat, **changes)
    services.settings = msgspec.structs.replace(services.settings, chat=chat)

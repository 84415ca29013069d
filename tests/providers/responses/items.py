"""The Responses endpoint's rules for a list of input items: pairing, order, ids, seals, compactions.

From the API reference, the guides (reasoning, function calling, compaction) and error bodies reported by users. Where
those are silent, the stricter interpretation is used, and each such place says so. All items are checked, including
those before a compaction item, which no longer count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from tests.providers.openai.refusal import expect_length, refuse
from tests.providers.openai.tool_rules import check_name
from tests.providers.responses.content_rules import INPUT_PARTS, Attachments, check_text
from tests.providers.responses.ledger import PREFIXES, Ledger

Item = Mapping[str, Any]
MAX_ID_LENGTH = 64
_ID = re.compile(r"[A-Za-z0-9_-]+")
_NOT_KEPT = (
    "Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item "
    "from your input."
)


@dataclass
class ItemWalk:
    """One pass over the items of a request; `check` refuses the first invalid one."""

    ledger: Ledger
    several_compactions: bool = False
    _attachments: Attachments = field(default_factory=Attachments)
    _ids: set[str] = field(default_factory=set)
    _calls: set[str] = field(default_factory=set)
    _open: dict[str, None] = field(default_factory=dict)
    _compactions: int = 0

    def check(self, items: Sequence[Item]) -> None:
        """Refuse invalid items as the endpoint does."""
        for number, item in enumerate(items):
            param = f"input[{number}]"
            after = items[number + 1] if number + 1 < len(items) else None
            self._check_id(item, param)
            match item.get("type", "message"):
                case "message":
                    self._check_message(item, param)
                case "reasoning":
                    self._check_reasoning(item, after)
                case "function_call":
                    self._check_call(item, param)
                case "function_call_output":
                    self._check_output(item, param)
                case "compaction":
                    self._check_compaction(item)
                case "compaction_trigger" if after is not None:
                    refuse("The 'compaction_trigger' item must be the final input item.", param, "invalid_value")
        self._check_all_answered()

    def _check_id(self, item: Item, param: str) -> None:
        given = item.get("id")
        if given is None:
            return
        where, kind = f"{param}.id", item.get("type", "message")
        expect_length(given, MAX_ID_LENGTH, where)
        if not _ID.fullmatch(given):
            expected = "Expected an ID that contains letters, numbers, underscores, or dashes"
            text = f"{expected}, but this value contained additional characters."
            refuse(f"Invalid '{where}': '{given}'. {text}", where, "invalid_value")
        prefix = PREFIXES.get(kind)
        if prefix and not given.startswith(f"{prefix}_"):
            refuse(f"Invalid '{where}': '{given}'. Expected an ID that begins with '{prefix}'.", where, "invalid_value")
        if given in self._ids:
            text = "Remove duplicate items from your input and try again."
            refuse(f"Duplicate item found with id {given}. {text}", "input")
        self._ids.add(given)
        # Stricter than reported in 2025: an id of another provider is not tolerated on a complete item either.
        if prefix and kind not in ("reasoning", "compaction") and given not in self.ledger.issued:
            refuse_unknown(given)
        self._check_reasoning_is_there(item, kind)

    def _check_reasoning_is_there(self, item: Item, kind: str) -> None:
        entry = self.ledger.issued.get(item["id"])
        if entry and entry.needs and entry.needs not in self._ids:
            text = f"was provided without its required 'reasoning' item: '{entry.needs}'."
            refuse(f"Item '{item['id']}' of type '{kind}' {text}", "input")

    def _check_message(self, item: Item, param: str) -> None:
        role, content, where = item["role"], item["content"], f"{param}.content"
        if role != "assistant":
            # Stricter than the reports: a result may not come after the next message that is not the model's.
            self._check_all_answered()
        if isinstance(content, str):
            check_text(content, where)
        elif role == "assistant":
            self._attachments.check_parts(content, where, ("output_text", "refusal"))
        else:
            self._attachments.check_parts(content, where, INPUT_PARTS if role == "user" else ("input_text",))

    def _check_reasoning(self, item: Item, after: Item | None) -> None:
        own, sealed = item["id"], item.get("encrypted_content")
        if sealed is None:
            if self.ledger.find_stored(own) is None:
                refuse_unknown(own)
        elif self.ledger.opened(sealed) != own or self._differs(item):
            refuse_seal(sealed)
        if not self._follows(after, self.ledger.issued[own].follower):
            refuse(f"Item '{own}' of type 'reasoning' was provided without its required following item.", "input")

    def _differs(self, item: Item) -> bool:
        """Return whether the summary differs from the issued one.

        Not documented, but a different summary was not encrypted with it.
        """
        return list(item["summary"]) != list(self.ledger.issued[item["id"]].item["summary"])

    def _follows(self, after: Item | None, follower: str | None) -> bool:
        """Return whether the item is the one that came after the reasoning; it may have lost its id."""
        if after is None or follower is None:
            return False
        expected = self.ledger.issued[follower].item
        if after.get("type", "message") != expected["type"]:
            return False
        if after.get("id") is not None:
            return bool(after["id"] == follower)
        if expected["type"] == "function_call":
            return bool(after["call_id"] == expected["call_id"])
        return bool(expected["type"] == "message" and after["role"] == "assistant")

    def _check_call(self, item: Item, param: str) -> None:
        call_id = item["call_id"]
        check_name(item["name"], f"{param}.name")
        check_text(call_id, f"{param}.call_id")
        expect_length(call_id, MAX_ID_LENGTH, f"{param}.call_id")
        if call_id in self._calls:
            # Not documented: it would be ambiguous which of two calls an output belongs to.
            refuse(f"Duplicate function call with call_id {call_id}.", "input")
        self._calls.add(call_id)
        self._open[call_id] = None

    def _check_output(self, item: Item, param: str) -> None:
        call_id, output = item.get("call_id"), item["output"]
        if not call_id:
            where = f"{param}.call_id"
            refuse(f"Missing required parameter: '{where}'.", where, "missing_required_parameter")
        expect_length(call_id, MAX_ID_LENGTH, f"{param}.call_id")
        if call_id not in self._open:
            # Also the error for a second output of one call, which is undocumented.
            refuse(f"No tool call found for function call output with call_id {call_id}.", "input")
        del self._open[call_id]
        if isinstance(output, str):
            check_text(output, f"{param}.output")
        else:
            self._attachments.check_parts(output, f"{param}.output", INPUT_PARTS)

    def _check_compaction(self, item: Item) -> None:
        self._check_all_answered()
        opened = self.ledger.opened(item["encrypted_content"])
        entry = self.ledger.issued.get(opened or "")
        if entry is None or entry.item["type"] != "compaction" or item.get("id") not in (None, opened):
            refuse_seal(item["encrypted_content"])
        self._compactions += 1
        if self._compactions > 1 and not self.several_compactions:
            # Stricter than the guide, which allows older compactions: a client that prunes sends one.
            refuse("Only one compaction item is accepted: remove what the newest one stands for.", "input")
        # A call and its output are not on two sides of a compaction: items before it are no longer read.
        self._calls.clear()

    def _check_all_answered(self) -> None:
        for call_id in self._open:
            refuse(f"No tool output found for function call {call_id}.", "input")


def refuse_unknown(item_id: str) -> NoReturn:
    """Refuse an item that is given only by its id, or that the server did not issue."""
    refuse(f"Item with id '{item_id}' not found. {_NOT_KEPT}", "input", None, 404)


def refuse_seal(sealed: str) -> NoReturn:
    """Refuse encrypted content that was not issued in this form."""
    shown = f"{sealed[:4]}...{sealed[-4:]}"
    reason = "Reason: Encrypted content could not be decrypted or parsed."
    refuse(f"The encrypted content {shown} could not be verified. {reason}", None, "invalid_encrypted_content")

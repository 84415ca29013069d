"""The fake Responses server refuses the bodies that the provider refuses; each has an accepted counterpart."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.providers.openai.refusal import Refusal, Refused
from tests.providers.responses import content_rules
from tests.providers.responses.ledger import Ledger
from tests.providers.responses.rules import Accepted, Endpoint, Rules, accept

RULES = Rules(models=("m",), window=1000)
PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()
PDF = "data:application/pdf;base64," + base64.b64encode(b"%PDF-1.7 /Type /Pages /Type /Page /Type /Page").decode()
CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "input": "hi", "store": False, **fields}


def content(*parts: Any, role: str = "user") -> dict[str, Any]:
    return body(input=[{"role": role, "content": list(parts)}])


def text(value: str = "x") -> dict[str, Any]:
    return {"type": "input_text", "text": value}


def image(url: str) -> dict[str, Any]:
    return content({"type": "input_image", "image_url": url, "detail": "auto"})


def file(**fields: Any) -> dict[str, Any]:
    return content({"type": "input_file", **fields})


def tool(**fields: Any) -> dict[str, Any]:
    return {"type": "function", "name": "now", "parameters": {"type": "object"}, "strict": False, **fields}


def tools(*given: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return body(tools=list(given), **fields)


def strict(**schema: Any) -> dict[str, Any]:
    return tools(tool(strict=True, parameters={**CLOSED, **schema}))


def managed(**entry: Any) -> dict[str, Any]:
    return body(context_management=[{"type": "compaction", "compact_threshold": 50_000, **entry}])


def accepted(request: Any, rules: Rules = RULES, endpoint: Endpoint = "responses") -> Accepted:
    return accept(endpoint, request, rules, Ledger())


def refused(request: Any, rules: Rules = RULES, endpoint: Endpoint = "responses") -> Refusal:
    with pytest.raises(Refused) as caught:
        accepted(request, rules, endpoint)
    return caught.value.refusal


@pytest.mark.parametrize(
    ("wrong", "right", "words"),
    [
        ([], body(), "could not parse the JSON body"),
        (body(foo=1), body(user="u"), "Unknown parameter: 'foo'."),
        ({"input": "hi"}, body(), "Missing required parameter: 'model'."),
        (body(model="x"), body(), "The requested model 'x' does not exist."),
        (body(model=5), body(), "Invalid type for 'model'"),
        ({"model": "m"}, body(), 'One of "input"'),
        (body(input=""), body(input="x"), 'One of "input"'),
        (body(input=[]), content(text()), 'One of "input"'),
        (body(max_output_tokens=15), body(max_output_tokens=16), "Expected a value >= 16, but got 15 instead."),
        (body(stream_options={}), body(stream=True, stream_options={}), "only allowed when 'stream'"),
        (body(temperature=1), body(), "'temperature' is not supported with this model"),
        (body(prompt_cache_key="k" * 65), body(prompt_cache_key="k" * 64), "string too long"),
        (body(metadata={"k": "v" * 513}), body(metadata={"k": "v" * 512}), "string too long"),
        (body(metadata={"k" * 65: "v"}), body(metadata={"k" * 64: "v"}), "string too long"),
        (
            body(metadata={f"k{n}": "v" for n in range(17)}),
            body(metadata={f"k{n}": "v" for n in range(16)}),
            "too many",
        ),
        (body(previous_response_id="resp_1"), body(previous_response_id=None), "'resp_1' not found"),
        (body(conversation="conv_1"), body(conversation=None), "not simulated"),
        (body(include=["all"]), body(include=["reasoning.encrypted_content"]), "Invalid value for 'include[0]'"),
        (body(truncation="off"), body(truncation="disabled"), "Invalid value for 'truncation'"),
        (managed(compact_threshold=49_999), managed(), "Expected a value >= 50000, but got 49999 instead."),
        (managed(compact_threshold=None), managed(), "Missing required parameter"),
        (managed(type="compact"), managed(), "Supported values are: 'compaction'"),
        (
            body(context_management=[{"type": "compaction", "compact_threshold": 50_000}] * 2),
            managed(),
            "only one compaction entry",
        ),
    ],
)
def test_an_argument_is_refused_and_its_neighbour_is_not(wrong: Any, right: Any, words: str) -> None:
    """The refusal has the provider's wording, where it is known."""
    assert words in refused(wrong).message
    assert accepted(right).items


@pytest.mark.parametrize(
    ("wrong", "right", "words"),
    [
        (content(), content(text()), "empty array"),
        (content(text("")), content(text()), "empty string"),
        (body(input=[{"role": "user", "content": ""}]), content(text()), "empty string"),
        (body(input=[{"role": "user", "content": "x", "cycle": 1}]), content(text()), "'input[0].cycle'"),
        (content({**text(), "cited": 1}), content(text()), "'input[0].content[0].cited'"),
        (body(input=[{"role": "tool", "content": "x"}]), content(text()), "Invalid value for 'input[0].role'"),
        (body(input=[{"type": "thing"}]), content(text()), "does not match any of the expected tags"),
        (
            content(text(), role="assistant"),
            content(text(), role="system"),
            "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
        ),
        (
            content({"type": "input_image", "image_url": PNG, "detail": "auto"}, role="developer"),
            content(text(), role="developer"),
            "Invalid value: 'input_image'",
        ),
        (content({"type": "input_image", "image_url": PNG}), image(PNG), "Missing required parameter"),
        (content({"type": "input_image", "detail": "low"}), image(PNG), "Missing required parameter"),
        (image("/tmp/a.png"), image("https://example.org/a.png"), "without the 'data:' prefix"),
        (image("data:image/png;base64,"), image(PNG), "empty base64-encoded bytes"),
        (image("data:image/png;base64,@@"), image(PNG), "invalid base64-encoded value"),
        (image(PNG.replace("png", "bmp")), image(PNG), "unsupported MIME type 'image/bmp'"),
        (image(PNG.replace("png", "jpeg")), image(PNG), "does not represent a valid image"),
        (file(file_data=PDF), file(file_data=PDF, filename="a.pdf"), "'input[0].content[0].filename'"),
        (file(filename="a.pdf"), file(file_data=PDF, filename="a.pdf"), "expected one of file_data"),
        (file(file_id="file-1"), file(file_url="https://example.org/a.pdf"), "No such File object"),
        (
            file(file_data="data:audio/mp3;base64,QUJD", filename="a.mp3"),
            file(file_data="data:text/plain;base64,QUJD", filename="a.txt"),
            "file type you uploaded is not supported",
        ),
        (
            file(file_data=PDF.replace("JVBERi", "QUJDRA"), filename="a.pdf"),
            file(file_data=PDF, filename="a.PDF"),
            "not supported",
        ),
        (file(file_data="JVBERi0=", filename="a.pdf"), file(file_data=PDF, filename="a.pdf"), "'data:' prefix"),
    ],
)
def test_content_is_refused_and_its_neighbour_is_not(wrong: Any, right: Any, words: str) -> None:
    """Images and files are decoded: the content of a data URL must match its type."""
    rules = Rules(models=("m",))
    assert words in refused(wrong, rules).message
    assert accepted(right, rules).items


def test_images_and_files_are_limited_in_number_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits apply to the whole request."""
    rules = Rules(models=("m",), window=0)
    picture = {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "low"}
    assert accepted(content(*[picture] * 500), rules).items
    assert "Too many images" in refused(content(*[picture] * 501), rules).message
    size = len(base64.b64decode(PNG.partition(",")[2]))
    monkeypatch.setattr(content_rules, "MAX_IMAGE_BYTES", 2 * size)
    embedded = {"type": "input_image", "image_url": PNG, "detail": "low"}
    assert accepted(content(embedded, embedded), rules).items
    assert "image size is too large" in refused(content(*[embedded] * 3), rules).message
    document = {"type": "input_file", "file_data": PDF, "filename": "a.pdf"}
    monkeypatch.setattr(content_rules, "MAX_FILE_BYTES", len(base64.b64decode(PDF.partition(",")[2])))
    assert accepted(content(document), rules).items
    assert "larger than" in refused(content(document, document), rules).message


@pytest.mark.parametrize(
    ("wrong", "right", "words"),
    [
        (tools(tool(name="a b")), tools(tool(name="a-b")), "does not match pattern"),
        (tools(tool(name="a" * 65)), tools(tool(name="a" * 64)), "string too long"),
        (tools(tool(), tool()), tools(tool(), tool(name="then")), "another tool of the name 'now'"),
        (
            tools({"type": "function", "name": "now"}),
            tools(tool()),
            "Missing required parameter: 'tools[0].parameters'",
        ),
        (tools(tool(extra=1)), tools(tool(description=None)), "Unknown parameter: 'tools[0].extra'"),
        (tools(tool(parameters={})), tools(tool()), "schema must be a JSON Schema of 'type: \"object\"'"),
        (tools(tool(parameters={"type": "array"})), tools(tool()), "got 'type: \"array\"'"),
        (
            tools(tool(parameters={"type": "object", "properties": {"a": {"type": "array"}}})),
            tools(tool(parameters={"type": "object", "properties": {"a": {"type": "array", "items": {}}}})),
            "In context=('properties', 'a'), array schema missing items.",
        ),
        (strict(additionalProperties=True), strict(), "'additionalProperties' is required to be supplied"),
        (strict(required=[]), strict(), "Missing 'a'."),
        (strict(required=["a", "b"]), strict(), "Extra required key 'b' supplied."),
        (
            strict(properties={"a": {"type": "object", "properties": {}}}),
            strict(properties={"a": {"type": "object", "properties": {}, "additionalProperties": False}}),
            "In context=('properties', 'a')",
        ),
        (
            strict(properties={"a": {"allOf": [CLOSED]}}),
            strict(properties={"a": {"anyOf": [CLOSED, {"type": "null"}]}}),
            "'allOf' is not permitted",
        ),
        (body(tool_choice="required"), tools(tool(), tool_choice="required"), "must be specified with 'tools'"),
        (
            tools(tool(), tool_choice={"type": "function", "name": "then"}),
            tools(tool(), tool_choice={"type": "function", "name": "now"}),
            "not found in 'tools'",
        ),
        (
            body(text={"format": {"type": "json_schema", "name": "f", "strict": True, "schema": {"type": "object"}}}),
            body(text={"format": {"type": "json_schema", "name": "f", "strict": True, "schema": CLOSED}}),
            "'additionalProperties' is required",
        ),
    ],
)
def test_a_tool_is_refused_and_its_neighbour_is_not(wrong: Any, right: Any, words: str) -> None:
    """Open schemas are refused only under `strict`."""
    assert words in refused(wrong).message
    assert accepted(right).items


def test_fields_for_reasoning_models_are_refused_by_others() -> None:
    """The reverse case is tested above."""
    plain = Rules(models=("m",), reasons=False)
    assert "not supported" in refused(body(reasoning={"effort": "low"}), plain).message
    assert "Encrypted content is not supported" in refused(body(include=["reasoning.encrypted_content"]), plain).message
    assert accepted(body(temperature=1, top_p=0.5), plain).items
    assert "above max" in refused(body(temperature=2.1), plain).message
    assert "below min" in refused(body(top_p=-0.1), plain).message


def test_a_prompt_over_the_window_is_refused_including_tools_instructions_and_reply() -> None:
    """The server's own count is exact to the token."""
    request = body(input="word " * 500, instructions="Be brief.", tools=[tool(description="Tell the time")])
    used = len(accepted(request).prompt)
    assert used > len(accepted(body(input="word " * 500)).prompt) > 500
    exact = Rules(models=("m",), window=used)
    assert accepted(request, exact).items
    refusal = refused({**request, "max_output_tokens": 16}, exact)
    assert (refusal.status, refusal.code, refusal.param) == (400, "context_length_exceeded", "input")
    assert accepted({**request, "max_output_tokens": 16, "truncation": "auto"}, exact).notes == ("truncation is auto",)
    counted = {key: value for key, value in request.items() if key != "store"}
    assert len(accepted(counted, Rules(window=1), "responses/input_tokens").prompt) == used, "counting has no window"
    assert accepted(request, Rules(window=0)).prompt, "0 is no window"


def test_each_endpoint_has_its_own_arguments() -> None:
    """Arguments of `create` may be unknown to compaction and counting."""
    assert refused(body(), endpoint="responses/compact").message == "Unknown parameter: 'store'."
    assert refused(body(), endpoint="responses/input_tokens").message == "Unknown parameter: 'store'."
    request = {"model": "m", "input": "hi", "instructions": "Be brief."}
    assert accepted(request, endpoint="responses/compact").notes == ()
    assert accepted({**request, "tools": [tool()]}, endpoint="responses/input_tokens").items
    assert refused({**request, "tools": [tool()]}, endpoint="responses/compact").param == "tools"


def test_storing_is_allowed_but_noted() -> None:
    """It is the provider's default."""
    assert accepted(body()).notes == ()
    assert accepted(body(store=True)).notes == ("store is not false",)
    assert accepted({"model": "m", "input": "hi"}).notes == ("store is not false",)

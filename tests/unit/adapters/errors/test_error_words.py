"""Rejected encrypted parts, fields that are too long, waiting times in a message, and the provider's own code."""

from __future__ import annotations

import json

import pytest

from codecompanion.adapters.errors.error_map import Endpoint, error_from_payload, error_from_status
from codecompanion.errors import ContextOverflow, EncryptedRefused, ModelNotFound, RateLimited, RequestRejected

ENDPOINT = Endpoint(name="test", base_url="https://api.test/v1")


def said(message: str, code: str | None = None) -> dict[str, object]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": "input", "code": code}}


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (400, "The encrypted content gAAA...Rg== could not be verified.", "invalid_encrypted_content"),
        (400, "The encrypted content for item rs_0a could not be verified. Reason: it could not be decrypted.", None),
        (400, "Item 'rs_06' of type 'reasoning' was provided without its required following item.", None),
        (400, "Item 'msg_1' of type 'message' was provided without its required 'reasoning' item: 'rs_1'.", None),
        (404, "Item with id 'rs_68b1' not found. Items are not persisted when `store` is set to false.", None),
    ],
)
def test_a_rejected_encrypted_part_has_its_own_error(status: int, message: str, code: str | None) -> None:
    """The session then sends the readable history instead; in a stream, the rejection comes as an error event."""
    assert type(error_from_status(status, said(message, code), {}, ENDPOINT)) is EncryptedRefused
    assert type(error_from_payload(json.dumps(said(message, code)).encode(), ENDPOINT)) is EncryptedRefused


def test_an_id_that_is_too_long_is_not_an_overflow() -> None:
    """The code is the same as for a text of 10 MB, for which a shorter history helps."""
    words = "Invalid 'input[3].{}': string too long. Expected a string with maximum length {}, but got {} instead."
    code = "string_above_max_length"
    call_id = error_from_status(400, said(words.format("call_id", 64, 83), code), {}, ENDPOINT)
    output = error_from_status(400, said(words.format("output", 10485760, 12345678), code), {}, ENDPOINT)
    assert type(call_id) is RequestRejected
    assert type(output) is ContextOverflow


@pytest.mark.parametrize(
    ("words", "seconds"),
    [("Please try again in 11.054s. Visit", 11.054), ("try again in 250ms.", 0.25), ("Try again later.", None)],
)
def test_a_wait_in_a_stream_is_read(words: str, seconds: float | None) -> None:
    """An event has no `retry-after` header."""
    error = error_from_payload(json.dumps(said(words, "rate_limit_exceeded")).encode(), ENDPOINT)
    assert isinstance(error, RateLimited)
    assert error.retry_after_s == seconds


def test_the_code_of_the_provider_is_kept() -> None:
    """It is read from both sources; if there is no code, the type is kept."""
    error = error_from_status(400, said("The requested model 'x' does not exist.", "model_not_found"), {}, ENDPOINT)
    assert isinstance(error, ModelNotFound)
    assert error.code == "model_not_found"
    assert error_from_status(400, said("no"), {}, ENDPOINT).code == "invalid_request_error"
    assert error_from_payload(json.dumps(said("no", "invalid_prompt")).encode(), ENDPOINT).code == "invalid_prompt"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"message": "Model Not Exist", "code": "invalid_request_error"}}),
        (400, {"error": {"message": "Unknown Model, please check the model code.", "code": "1211"}}),
        (400, {"error": {"message": "模型不存在，请检查模型代码。", "code": "1211"}}),
        (400, {"error": {"message": "The requested model is not supported.", "code": "model_not_supported"}}),
        (400, {"error": {"message": "The model `gpt-9` is not supported"}}),
        (400, {"error": {"message": "Not supported model kimi-k9"}}),
        (400, {"error": {"message": "Invalid model name passed in model=x. Call `/v1/models`."}}),
        (400, {"error": {"message": "No model is currently loaded."}}),
        (400, {"error": {"message": "Model x is not loaded"}}),
        (422, {"detail": "unknown model: x"}),
        (404, {"error": {"message": "No endpoints found for x/y.", "code": 404}}),
        (404, {"error": {"message": "model 'x' not found, try pulling it first"}}),
        (400, {"error_code": 336000, "error_msg": "invalid_model"}),
    ],
)
def test_an_unknown_model_is_reported_as_such(status: int, body: dict[str, object]) -> None:
    """The report has the status and a remedy."""
    endpoint = Endpoint(name="test", base_url="https://api.test/v1", model="x-large")
    error = error_from_status(status, body, {}, endpoint)
    assert isinstance(error, ModelNotFound)
    assert str(error) == f"test: the endpoint does not know the model x-large ({status}). Choose another model with ga."


@pytest.mark.parametrize(
    "message",
    [
        "Unsupported parameter: 'temperature' is not supported with this model.",
        "tools is not supported in this model",
        "This model does not support image input.",
    ],
)
def test_a_model_without_a_feature_is_not_unknown(message: str) -> None:
    """The model exists; it does not support something in the request."""
    assert type(error_from_status(400, said(message), {}, ENDPOINT)) is RequestRejected

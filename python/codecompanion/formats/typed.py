"""Reads typed values with msgspec, safely from any thread.

msgspec prepares a type when it is first used, and exposes a partly prepared `Struct` to other threads; using that
crashes the process (0.22: the type of a field is a null pointer in `json_decode_struct_map_inner`). Here one thread
prepares a type while the others wait; afterwards there is no locking. The whole package reads typed values through this
module (`tests/unit/formats/test_typed.py`).
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")
_lock = threading.RLock()
_prepared: set[Any] = set()


def _prepare(kind: Any) -> None:
    if kind not in _prepared:
        with _lock:
            msgspec.json.Decoder(kind)
            _prepared.add(kind)


@overload
def json_decoder(kind: type[T]) -> msgspec.json.Decoder[T]: ...
@overload
def json_decoder(kind: Any) -> msgspec.json.Decoder[Any]: ...
def json_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return `msgspec.json.Decoder(kind)`."""
    _prepare(kind)
    return msgspec.json.Decoder(kind)


@overload
def read_json(data: bytes | str, *, type: type[T]) -> T: ...
@overload
def read_json(data: bytes | str, *, type: Any) -> Any: ...
def read_json(data: bytes | str, *, type: Any) -> Any:
    """Return `msgspec.json.decode(data, type=type)`; raises its errors."""
    _prepare(type)
    return msgspec.json.decode(data, type=type)


@overload
def read_msgpack(data: bytes, *, type: type[T]) -> T: ...
@overload
def read_msgpack(data: bytes, *, type: Any) -> Any: ...
def read_msgpack(data: bytes, *, type: Any) -> Any:
    """Return `msgspec.msgpack.decode(data, type=type)`; raises its errors."""
    _prepare(type)
    return msgspec.msgpack.decode(data, type=type)


@overload
def convert(value: Any, type: type[T], *, strict: bool = True) -> T: ...
@overload
def convert(value: Any, type: Any, *, strict: bool = True) -> Any: ...
def convert(value: Any, type: Any, *, strict: bool = True) -> Any:
    """Return `msgspec.convert(value, type, strict=strict)`; raises its errors."""
    _prepare(type)
    return msgspec.convert(value, type, strict=strict)

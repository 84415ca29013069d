"""Formats the name of an adapter and its model on one line."""

from __future__ import annotations


def model_name(adapter: str, model: str) -> str:
    """Return `adapter · model`; the adapter alone if the model is unknown or has the same name."""
    return f"{adapter} · {model}" if model not in ("", adapter) else adapter

"""Anthropic Messages: the wire format of Claude, and of gateways that copy it (`providers.md`)."""

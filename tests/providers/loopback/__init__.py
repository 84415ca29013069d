"""Shared by all fake providers: the HTTP server, its answers as bytes, the token count, the SDK types as schemas."""

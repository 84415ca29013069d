"""What all fake providers share: the HTTP server, its answers as bytes, the token count, the SDKs' types as schemas."""

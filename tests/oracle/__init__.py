"""The official SDKs as judges of our decoders: both must read a reply the same way."""

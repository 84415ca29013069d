"""The official SDKs as references for our decoders: both must read a reply in the same way."""

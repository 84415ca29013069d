"""The official SDKs as the judges of our decoders: what they read in a reply is what we have to read in it."""

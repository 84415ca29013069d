"""The offline adapter: answers without a model, a network or a key."""

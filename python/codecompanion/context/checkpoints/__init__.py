"""The stored state of a chat: built from the log, and which of them is restored."""

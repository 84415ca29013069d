"""The stored state of a chat: building it from the log, and choosing which one to restore."""

"""Opens stored chats from the log, repairs them after a crash, and recovers lost ones from checkpoints."""

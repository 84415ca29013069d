"""Opening stored chats and recovering lost ones: from the log, from checkpoints, after a crash."""

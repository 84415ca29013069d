"""Opening chats and losing them: from the log, from checkpoints, after a crash."""

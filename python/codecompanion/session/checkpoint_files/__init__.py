"""The snapshot, checkpoint and conversation files of a chat."""

"""What a chat did and what it cost, read from its log alone: right after a restart as at any other time (R-360)."""

"""What the real endpoints refuse in a whole request body; one sentence per reason, none when it would be taken."""

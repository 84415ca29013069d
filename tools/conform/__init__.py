"""What the five documents ask for, row by row, and the tests that show it on the chat's own path."""

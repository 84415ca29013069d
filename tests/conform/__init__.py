"""The five documents, row by row: scenes that show rows in a chat, and the check that every row is shown."""

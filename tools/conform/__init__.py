"""The requirements of the five documents, row by row, and the tests that show each on the chat's own path."""

"""The requirements of the five documents, row by row, and the tests that show each of them in a chat."""

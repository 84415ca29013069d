"""The sources of texts in a chat, and the grants that they narrow."""

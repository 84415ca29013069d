"""Running the tool calls of a reply: approval, grants, audit records."""

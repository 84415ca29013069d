"""The accounting of a chat: its requests, the context meter, and the plausibility check of reported usage."""

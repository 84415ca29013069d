"""Context management of a chat: its model and limits, the policy's plans, what does not fit."""

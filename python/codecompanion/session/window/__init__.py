"""Context management of one chat: its model and limits, the policy's plans, and requests that do not fit."""

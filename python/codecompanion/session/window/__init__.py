"""Manages the context of one chat: its model and limits, the policy's plans, and requests that do not fit."""

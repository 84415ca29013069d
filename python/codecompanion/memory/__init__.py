"""Handles memory: content that outlives a chat, as entries that are listed, searched and sent. Pure."""

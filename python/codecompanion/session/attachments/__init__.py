"""Attachments of a chat: files, images, rules, pins, chosen tools; and whether their text is up to date."""

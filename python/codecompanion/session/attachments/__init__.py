"""Attachments of a chat: files, images, rules, pins, chosen tools; and whether their text is current."""

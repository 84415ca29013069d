"""Attachments of a chat (files, images, rules, pins, chosen tools), and checks whether their text is up to date."""

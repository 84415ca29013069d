"""Handles policies as data: reads and checks their tables, and applies options to them."""

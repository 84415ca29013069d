"""Servers that fill in code, as their documentation describes them."""

"""Attacks from outside: each suite acts as a hostile folder, page, server or model."""

"""Databases as earlier versions wrote them, and what those versions then showed and sent."""

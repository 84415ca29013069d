"""Attacks from outside (issue 20): each suite acts as a hostile folder, page, server or model."""

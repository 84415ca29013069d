"""Attacks from outside (issue 20): each suite tries the possibilities of a folder, a page, a server or a model."""

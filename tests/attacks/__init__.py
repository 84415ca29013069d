"""Attacks from outside (issue 20): each suite tries what a folder, a page, a server or a model could do."""

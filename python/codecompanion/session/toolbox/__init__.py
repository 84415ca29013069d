"""Collects the tools of one chat from the providers for its folder, and groups them."""

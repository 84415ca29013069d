"""A golden record of chats: the log, the editor's events and the provider's requests, kept stable while code moves.

`stories_*` are the scripts, `desk` plays one through the editor's interface, `plain` replaces values that differ
between two runs, and `records/` contains the results. `python -m tests.golden.rewrite [name…]` intentionally rewrites
them.
"""

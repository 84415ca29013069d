"""A golden record of chats: the log, the editor's events and the provider's requests, kept stable while code moves.

`stories_*` are the scripts, `desk` plays one through the door of the editor, `plain` replaces what differs between two
runs, `records/` holds the results. `python -m tests.golden.rewrite [name…]` writes them again on purpose.
"""

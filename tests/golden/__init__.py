"""A golden record of chats: what the log, the editor and the provider got of each, held still while code moves.

`stories_*` are the scripts, `desk` plays one through the door of the editor, `plain` replaces what differs between two
runs, `records/` holds the results. `python -m tests.golden.rewrite [name…]` writes them again on purpose.
"""

"""Stores chats, drafts, blobs and leases on disk: one SQLite file and a blob folder (design, section Store)."""

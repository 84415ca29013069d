"""The code of a project: its index kept true to the disk, and searched (issue 11)."""

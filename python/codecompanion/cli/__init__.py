"""The command line, `python -m codecompanion …`, which is a stable contract."""

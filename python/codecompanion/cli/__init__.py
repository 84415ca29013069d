"""The command line: `python -m codecompanion …` (a stable contract)."""

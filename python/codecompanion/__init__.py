"""CodeCompanion: a Neovim chat that manages its context window and never exceeds it.

The package is the Python side of the plugin: history, policies, adapters, tools and the command line. The layout and
the allowed direction of imports are described in `ARCHITECTURE` of the README and checked by
`tests/unit/test_import_rules.py`.
"""

__version__ = "0.3.0"

"""Generators for text that is written once and needed in several places.

From the Lua option schema, the wire structs and the texts in `parts/`: the help file `doc/codecompanion.txt`, the types
`lua/codecompanion/types.lua`, and the Python defaults `settings_defaults.json`.

    python -m tools.docgen            writes them
    python -m tools.docgen --check    status 1 and a list when one of them is out of date

It needs Neovim (`$NVIM_BIN`, the project's environment, or PATH) to read the schema. For developers: it works in a
checkout only.
"""

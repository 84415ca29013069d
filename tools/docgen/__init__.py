"""Generators for text that is written once and needed in several places.

From the Lua option schema, the wire structs and the texts in `parts/`, they generate the help file
`doc/codecompanion.txt`, the types `lua/codecompanion/types.lua`, and the Python defaults `settings_defaults.json`.

    python -m tools.docgen            writes them
    python -m tools.docgen --check    exits with status 1 and lists the files that are out of date

Reading the schema needs Neovim (`$NVIM_BIN`, the project's environment, or PATH). For developers: it works only in a
checkout.
"""

"""What a grammar finds in a file: definitions, references, imports (R-222, R-225).

`languages` says by name or first line which language a file is; `parse` reads a text with that language's grammar and
our own queries (`queries/*.scm`). Nothing here imports tree-sitter before the first file is parsed.
"""

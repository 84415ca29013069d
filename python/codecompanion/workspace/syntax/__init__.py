"""Parses files with a grammar into definitions, references and imports (R-222, R-225).

`languages` detects the language of a file by its name or first line; `parse` reads a file with that language's grammar
and our own queries (`queries/*.scm`). tree-sitter is not imported until the first file is parsed.
"""

"""Project rules: discovery, parsers, groups (R-549)."""

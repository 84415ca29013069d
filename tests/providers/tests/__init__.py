"""The fake providers' own tests: they refuse what the providers refuse, and accept its nearest neighbour."""

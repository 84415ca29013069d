"""Maps providers' error messages and codes to our error tree, and decides when to retry."""

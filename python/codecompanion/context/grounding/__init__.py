"""Code that keeps a summary true: quotes of the user, verified names, keys to the original."""

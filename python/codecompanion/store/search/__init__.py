"""Search over everything ever said."""

"""Strategies that reduce the view without a model: they clear, truncate, strip, replace or drop content."""

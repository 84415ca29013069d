"""Strategies that reduce the view without a model: clear, truncate, strip, replace, drop."""

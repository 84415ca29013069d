"""Strategies that reduce the view without a model: clear, cut, strip, replace, drop."""

"""Strategies that ask a model for a summary, judge it, fit it and insert it into the view."""

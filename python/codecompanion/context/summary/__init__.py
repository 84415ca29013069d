"""Strategies that have a model write a summary, judge it, fit it and insert it into the view."""

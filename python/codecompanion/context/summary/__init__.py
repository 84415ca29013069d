"""Strategies that have a model write a summary, judge it, fit it and put it into the view."""

"""Policies as data: tables, their checks, and options applied to them."""

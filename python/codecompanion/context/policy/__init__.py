"""Policies as data: tables, their checks, options laid over them."""

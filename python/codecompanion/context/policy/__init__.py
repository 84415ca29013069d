"""Policies as data: tables, schema and checks, options laid over them, triggers, named events."""

"""Builds, merges and renders KodaCode's durable history summary, a typed value."""

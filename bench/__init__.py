"""Measurements, one command each; see the README."""

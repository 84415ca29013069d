"""Tests of our adapters against the fake providers (`tests/providers`)."""

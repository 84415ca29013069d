"""Tests of the fake Responses endpoint."""

"""Tests of the fake Messages endpoint."""

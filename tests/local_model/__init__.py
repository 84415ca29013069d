"""Tests of the plugin against llama.cpp's own server with a small model, on this machine."""

"""Adapter tests, and the loopback servers they (and the Neovim tests and the benchmarks) talk to."""

"""Extracts facts from single messages and tool calls: demands, names, noise, files."""

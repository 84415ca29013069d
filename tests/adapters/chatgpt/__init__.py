"""Tests of the ChatGPT plan adapter against a fake OpenAI on this machine."""

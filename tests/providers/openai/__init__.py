"""Shared by the fakes of both OpenAI endpoints: refusals, function tools, the prompt cache."""

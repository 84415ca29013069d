"""What the fakes of both OpenAI endpoints share: how they refuse, function tools, the prompt cache."""

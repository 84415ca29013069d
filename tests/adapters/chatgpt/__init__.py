"""A ChatGPT plan, against a fake OpenAI on this machine."""

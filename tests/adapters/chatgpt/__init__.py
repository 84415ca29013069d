"""A ChatGPT plan, against an OpenAI on this machine."""

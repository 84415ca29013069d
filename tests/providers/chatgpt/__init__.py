"""OpenAI's “Sign in with ChatGPT” with plan usage, as a server on this machine."""

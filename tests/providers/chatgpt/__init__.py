"""OpenAI's “Sign in with ChatGPT” with plan usage, as a local server."""

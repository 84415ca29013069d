"""OpenAI Responses: items instead of messages, encrypted reasoning, and compaction by the provider."""

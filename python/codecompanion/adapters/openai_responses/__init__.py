"""OpenAI Responses: items instead of messages, sealed reasoning, and compaction by the provider."""

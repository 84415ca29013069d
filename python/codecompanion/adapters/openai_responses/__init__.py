"""OpenAI Responses: a wire format with items instead of messages, encrypted reasoning, and provider-side compaction."""

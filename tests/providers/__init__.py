"""Providers that exist only in tests: loopback servers that judge a request as the real endpoint does.

`loopback` is shared by all, `openai` by both OpenAI endpoints; `chat`, `responses` and `anthropic` are one endpoint
each: `server` answers, `rules` refuse requests, and `answers` are scripted by tests. They are written from the
providers' documentation and from recorded bytes, without a line shared with the plugin (a test checks this), so that
they can be its judges.
"""

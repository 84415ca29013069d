"""The providers that exist only in tests: loopback servers that judge a request as the real endpoint does.

`loopback` is what all share; `openai` what both OpenAI endpoints share; `chat`, `responses` and `anthropic` are an
endpoint each: `server` answers, `rules` refuse, `answers` are what a test scripts. Written from the providers' pages
and from recorded bytes, no line shared with the plugin (a test looks), so that they can be its judges.
"""

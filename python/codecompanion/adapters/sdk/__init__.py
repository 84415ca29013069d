"""`transport = "sdk"`: requests through the official clients of OpenAI and Anthropic, which sign them for a cloud.

Imported where an entry asks for it; the extra `sdk` brings the packages.
"""

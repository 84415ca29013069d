"""GitHub Copilot: its login, its short-lived tokens, its models, each on the endpoint it is served at.

GitHub documents no interface for chat with Copilot outside of its own programs; what is here was learned from what
public plugins do (codecompanion.nvim, CopilotChat.nvim, copilot.lua) and from GitHub's page on the device flow. It has
not been tried with an account. Imported only where the adapter is used.
"""

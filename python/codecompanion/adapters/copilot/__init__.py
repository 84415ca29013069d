"""GitHub Copilot: its login, its short-lived tokens, its models, each on its own endpoint.

GitHub documents no interface for chat with Copilot outside its own programs; this code is based on public plugins
(codecompanion.nvim, CopilotChat.nvim, copilot.lua) and GitHub's page on the device flow. It has not been tried with an
account. Imported only when the adapter is used.
"""

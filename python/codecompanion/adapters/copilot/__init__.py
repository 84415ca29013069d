"""The GitHub Copilot adapter: login, short-lived tokens, and models, each on the endpoint that serves it.

GitHub documents no interface for chat with Copilot outside its own programs; this code is based on public plugins
(codecompanion.nvim, CopilotChat.nvim, copilot.lua) and GitHub's page on the device flow. It has not been tested with
an account. Imported only when the adapter is used.
"""

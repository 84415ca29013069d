"""Edits in place (`:[range]CodeCompanion instruction`): the request to the model, and reading its reply. Pure."""

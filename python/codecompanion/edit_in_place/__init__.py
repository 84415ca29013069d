"""Edits in place (`:[range]CodeCompanion instruction`): builds the request to the model and reads its reply. Pure."""

"""Edits in place (`:[range]CodeCompanion instruction`): what the model is asked, and how its reply is read. Pure."""

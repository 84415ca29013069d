"""The summary without a model: what the log says happened, read and written by code."""

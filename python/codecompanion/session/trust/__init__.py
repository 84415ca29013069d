"""Workspace trust: the decision whether a folder's files may run or instruct the model."""

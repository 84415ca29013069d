"""Workspace trust (issue 20, section 2): the decision whether a folder's files may run or instruct the model."""

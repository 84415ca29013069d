"""Workspace trust (issue 20, section 2): the one decision about what a folder may make the plugin run or believe."""

"""The prompt library as the editor sees it: the prompts in files, and which of a project's may be used."""

"""The prompt library as the editor sees it: what the files hold, and which of a project's may be used."""

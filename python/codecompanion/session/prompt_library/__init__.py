"""Lists the prompt files for the editor, and decides which of a project's prompts may be used."""

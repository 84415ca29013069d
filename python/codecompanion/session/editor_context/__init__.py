"""What a message mentions of the editor (`#{diagnostics}`), and the line on what the user looks at, as messages."""

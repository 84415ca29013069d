"""Every option of the schema changes something observable."""

"""What one message or tool call says: demands, names, noise, files it is about."""

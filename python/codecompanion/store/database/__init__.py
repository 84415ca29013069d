"""SQLite itself: connections, the format and its migrations, the one thread that writes."""

"""Where keys come from, and how they are kept out of every text."""

"""`make pictures`: the pictures of README and documents, taken of the real interface on the offline adapter."""

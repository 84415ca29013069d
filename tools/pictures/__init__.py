"""`make pictures`: the pictures of the README and the documents, taken of the real interface on the offline adapter."""

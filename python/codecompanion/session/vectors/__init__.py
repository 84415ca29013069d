"""Search by meaning: the vectors of a code index made, priced, and compared with a question (R-232, R-239)."""

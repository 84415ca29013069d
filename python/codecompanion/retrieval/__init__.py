"""From a question to the code it is about: pure (R-201 … R-253)."""

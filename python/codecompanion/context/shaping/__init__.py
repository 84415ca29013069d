"""The parts of one request that shaping may leave out: facts, prompt fragments, schemas."""

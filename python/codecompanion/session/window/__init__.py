"""Between the view and a request: limits, policy, shaping, the provider side, what does not fit."""

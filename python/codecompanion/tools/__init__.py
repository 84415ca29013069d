"""Tools the model may call: registry, approval, runner, and the built-in ones."""

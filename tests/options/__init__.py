"""Every option of the schema changes something observable: the test of issue 22, section 2."""

"""Tools for developers in a checkout, not installed: `docgen` (`make doc`) and `demo` (`make demo`)."""

"""What developers run in a checkout and nobody installs: `docgen` (`make doc`) and `demo` (`make demo`)."""

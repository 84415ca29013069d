"""The demo: a recorded session (written by `make_session`), its player in a headless Neovim, and the report."""

"""The demo: a recorded session (`make_session` writes it), its player in a headless Neovim, and the report."""

-- Package spec for lazy.nvim: sourced at start and set up with `opts`. It names no command to wait for: plugin/ costs
-- a fifth of a millisecond and loads nothing else, and without it a restored session could not show its chats.
-- Optional: it adds to the user's own spec of that name and must not become a plugin by itself (a fork's name differs).
return {
  "codecompanion",
  optional = true,
  lazy = false,
  opts = {},
}

-- Package spec for lazy.nvim: sourced at startup and set up with `opts`. It has no lazy-loading triggers: plugin/ costs
-- a fifth of a millisecond and loads nothing else, and without it a restored session could not show its chats.
-- Optional: it extends the user's own spec of that name and must not become a plugin by itself (a fork's name differs).
return {
  "codecompanion",
  optional = true,
  lazy = false,
  opts = {},
}

-- Package spec for lazy.nvim: loaded on the first command, set up with `opts`.
-- Optional: it adds to the user's own spec of that name and must not become a plugin by itself (a fork's name differs).
return {
  "codecompanion",
  optional = true,
  cmd = { "CodeCompanion", "CodeCompanionChat", "CodeCompanionCompact" },
  opts = {},
}

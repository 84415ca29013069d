-- Package spec for lazy.nvim: loaded on the first command, set up with `opts`.
return {
  cmd = { "CodeCompanion", "CodeCompanionChat", "CodeCompanionCompact" },
  opts = {},
}

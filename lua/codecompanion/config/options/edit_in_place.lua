---Options of edits in place: `interactions.inline`.

local keymaps = require("codecompanion.config.options.keymaps")

---@type { [1]: string, [2]: table<string, string|string[]>, [3]: string }[]
local KEYS = {
  { "options", { n = "g?" }, "Show the keys" },
  { "stop", { n = "<C-c>" }, "Stop the reply (in the chat: q)" },
  { "retry", { n = "g<CR>" }, "Ask again with another instruction, about the current lines" },
  { "follow_up", { n = "g." }, "Follow up: describe how to change the proposal" },
  { "open_chat", {}, "Open the chat of the edit (:CodeCompanion edits)" },
  { "accept_change", {}, "Accept all hunks (replaces the shared key for this action)" },
  { "reject_change", {}, "Reject all hunks (replaces the shared key for this action)" },
  { "always_accept", {}, "Always accept (replaces the shared key for this action)" },
}

return {
  {
    name = "adapter",
    type = { "string", "table" },
    optional = true,
    adapter = true,
    description = "Adapter for edits in place; defaults to the adapter of new chats.",
  },
  {
    name = "keymaps",
    description = "More keys for a buffer with a proposal: { modes = { n = … } }, or false.",
    fields = vim.tbl_map(function(key)
      return {
        name = key[1],
        description = key[3],
        disable = true,
        fields = { keymaps.modes(key[2]) },
      }
    end, KEYS),
  },
}

---Options of edits in place: `interactions.inline`.

local keymaps = require("codecompanion.config.options.keymaps")

---@type { [1]: string, [2]: table<string, string|string[]>, [3]: string }[]
local KEYS = {
  { "options", { n = "g?" }, "Show the keys" },
  { "accept_change", { n = "ga" }, "Accept all changes" },
  { "reject_change", { n = "gr" }, "Reject all changes, or stop the reply" },
  { "stop", { n = "<C-c>" }, "Stop the reply" },
  { "accept_hunk", { n = "do" }, "Accept the change under the cursor" },
  { "reject_hunk", { n = "dr" }, "Reject the change under the cursor" },
  { "next_hunk", { n = "]c" }, "Next change" },
  { "previous_hunk", { n = "[c" }, "Previous change" },
  { "retry", { n = "g<CR>" }, "Ask again in other words, about the lines as they are" },
  { "follow_up", { n = "g." }, "Say what the proposal should be like instead" },
  { "show_diff", { n = "gK" }, "Show all of it as a diff" },
  { "open_chat", { n = "gO" }, "Open the chat of the edit" },
}

return {
  {
    name = "adapter",
    type = { "string", "table" },
    optional = true,
    adapter = true,
    description = "The adapter of edits in place: its name, or { name = …, model = … }. By default that of new chats.",
  },
  {
    name = "keymaps",
    description = "Keys of a buffer while a proposal stands in it; afterwards they are what they were. Each is"
      .. " { modes = { n = … } }, or false for no key.",
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

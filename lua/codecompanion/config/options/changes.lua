---Keys for deciding on proposed changes in any view: `interactions.shared.keymaps`. The names and the keys `g1` to `g4`
---match those of codecompanion.nvim.

local keymaps = require("codecompanion.config.options.keymaps")

local M = {}

---@type { [1]: string, [2]: table<string, string|string[]>, [3]: string }[]
M.KEYS = {
  { "accept_change", { n = "g2", v = "g2" }, "Accept the change or tool call; in Visual mode the selected hunks" },
  { "reject_change", { n = "g3", v = "g3" }, "Reject the change or tool call; in Visual mode the selected hunks" },
  { "always_accept", { n = "g1" }, "Accept, and choose what to allow from now on" },
  { "cancel", { n = "g4" }, "Cancel all calls of the turn" },
  { "skip_hunk", { n = "g5", v = "g5" }, "Skip the hunk under the cursor, or the selected ones; u undoes it" },
  { "next_hunk", { n = "]c" }, "Next hunk" },
  { "previous_hunk", { n = "[c" }, "Previous hunk" },
  { "view_diff", { n = "gK" }, "Show the diff; in the chat, same as K" },
}

---@return CodeCompanion.Option[]
function M.fields()
  return {
    {
      name = "keymaps",
      description = "Keys to accept or reject a proposed change: { modes = { n = … } }, or false. Active only while"
        .. " a change is proposed.",
      fields = vim.tbl_map(function(key)
        return { name = key[1], description = key[3], disable = true, fields = { keymaps.modes(key[2]) } }
      end, M.KEYS),
    },
  }
end

return M

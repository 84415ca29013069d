---Shows the title of the newest earlier chat of the folder in an empty chat; `:CodeCompanionChat Resume` opens it.

local host = require("codecompanion.host")
local input_hint = require("codecompanion.chat.buffer.input_hint")
local registry = require("codecompanion.chat.state.open_chats")

local M = {}

local ASKED = 20 -- the newest ones may be drafts that are open here

---Show the title of the newest earlier chat of this folder in an empty chat. A failure is not reported, because the
---user did not ask.
---@param chat CodeCompanion.Chat
function M.tell(chat)
  host.request("list_sessions", { cwd = vim.fn.getcwd(), limit = ASKED }, function(err, items)
    local earlier = vim.iter(err and {} or items):find(function(item)
      return item.messages > 0 and not item.owned and not registry.by_id(item.id)
    end)
    if earlier and not chat.touched and vim.api.nvim_buf_is_loaded(chat.bufnr) then
      chat.earlier = require("codecompanion.chat.state.chat_title").shown(earlier.title)
      input_hint.draw(chat)
    end
  end)
end

return M

---Handles live attachments, whose changes are sent to the model: the options of `/file` and `/buffer`, and the key in
---the context block.

local context = require("codecompanion.chat.draw.context_block")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")

local M = {}

local OPTIONS = { ["--live"] = true, ["--once"] = false }
local KINDS = { file = true, buffer = true }

---Parse a leading `--live` or `--once` of an argument.
---@param argument string
---@return boolean? is_live nil = as configured
---@return string rest
function M.option(argument)
  local word, rest = argument:match("^(%-%-%l+)%s*(.*)$")
  if word and OPTIONS[word] ~= nil then
    return OPTIONS[word], rest
  end
  return nil, argument
end

---Return the options that begin with `lead`.
---@param lead string
---@return string[]
function M.options(lead)
  return vim.tbl_filter(function(option)
    return vim.startswith(option, lead)
  end, { "--live", "--once" })
end

---Return the items on a row of the context block: for its heading or closed fold, all that can be live.
---@param chat CodeCompanion.Chat
---@param row integer
---@return table[]
local function items_at(chat, row)
  if row == 0 and (chat.context_shown or {})[1] then
    return vim.tbl_filter(function(item)
      return KINDS[item.kind] == true
    end, chat.context_shown)
  end
  local item = context.item_at(chat, row)
  return item and KINDS[item.kind] and { item } or {}
end

---Toggle whether the items on a row are live; if some but not all of them are, all become live.
---@param chat CodeCompanion.Chat
---@param row integer
function M.toggle(chat, row)
  local items = items_at(chat, row)
  if #items == 0 then
    return say.hint("No attached file or buffer here; they are listed at the top of the chat")
  end
  local is_live = vim.iter(items):any(function(item)
    return not item.live
  end)
  local ids = vim.tbl_map(function(item)
    return item.id
  end, items)
  session.request(chat, "set_live", { items = ids, live = is_live }, say.hint, function(reason)
    say.chat(chat, reason, severity.WARN)
  end)
end

return M

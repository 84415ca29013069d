---What a turn changed as a quickfix list: one entry for each place.

local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")

local M = {}

---@param row table
---@return string
local function text_of(row)
  local counts = require("codecompanion.files.counts").text(row)
  local parts = { row.tool, counts ~= "" and counts or nil }
  if row.state == "unsaved" then
    parts[#parts + 1] = "not saved"
  end
  return table.concat(parts, " ")
end

---@param rows table[] Newest first
---@param all boolean
---@param turn_id? string
---@return table[] items
local function items_of(rows, all, turn_id)
  local items = {}
  for _, row in ipairs(rows) do
    if row.tool ~= "revert" and not row.reverted and not row.deleted then
      turn_id = turn_id or row.turn_id
      if all or row.turn_id == turn_id then
        for at = #row.lines, 1, -1 do
          table.insert(items, 1, { filename = row.path, lnum = row.lines[at], text = text_of(row) })
        end
      end
    end
  end
  return items
end

---Fill the quickfix list and open it.
---@param chat CodeCompanion.Chat
---@param all boolean The whole chat, not only the newest turn that changed something
---@param turn_id? string Another turn
function M.fill(chat, all, turn_id)
  session.request(chat, "list_changes", { hunks = true }, function(rows)
    local items = items_of(rows, all, turn_id)
    if #items == 0 then
      return say.line("The tools of this chat have changed no files that are there now.")
    end
    vim.fn.setqflist({}, " ", { title = "CodeCompanion: file changes", items = items })
    vim.cmd("botright copen")
  end)
end

return M

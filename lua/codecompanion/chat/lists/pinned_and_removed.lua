---Lists pinned messages, and messages removed from the view.

local float = require("codecompanion.screen.float")
local history = require("codecompanion.chat.wire.edit_view")
local numbers = require("codecompanion.text.numbers")
local originals = require("codecompanion.chat.lists.whole_text")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local scratch = require("codecompanion.screen.scratch_buffer")

local M = {}

---List the pinned messages.
---@param chat CodeCompanion.Chat
function M.pins(chat)
  session.request(chat, "list_pins", {}, function(rows)
    if #rows == 0 then
      return say.line({ "No pins yet; /pin pins the newest message, /pin text an instruction", "No pins yet" })
    end
    local lines = vim.tbl_map(function(row)
      return ("%2d  ⚑ %7s  %-9s  %s"):format(row.number, numbers.short(row.tokens), row.role, row.text)
    end, rows)
    local bufnr, win =
      float.open({ title = "Pinned", lines = lines, width = 100, footer = { "x unpin", "K show", "q close" } })
    vim.wo[win].cursorline = true
    local on = scratch.keys(bufnr, win, function(line)
      return rows[line]
    end)
    on("x", "Unpin", function(row)
      history.unpin(chat, { item = row.id }, function()
        scratch.close(win)
        M.pins(chat)
      end)
    end)
    on({ "K", "<CR>", "gf" }, "Show the message", function(row)
      originals.message(chat, row.id)
    end)
  end)
end

---@param row table
---@return string[]
local function recalled(row)
  local facts = ("cycle %d · %s · %s tokens"):format(row.cycle, row.how, numbers.short(row.tokens))
  local title = row.title .. (row.times > 1 and (" ×%d"):format(row.times) or "")
  local lines = { (("%-6s %s"):format(row.key, title):gsub("\n", " ")), "       " .. facts }
  if row.changed ~= "" then
    lines[#lines + 1] = "       ! " .. row.changed
  end
  if row.snippet ~= "" then
    lines[#lines + 1] = "       " .. row.snippet:gsub("%s+", " ")
  end
  return lines
end

---Search the removed messages, and list the results.
---@param chat CodeCompanion.Chat
---@param words string "" = all, newest first
function M.recall(chat, words)
  session.request(chat, "recall", { words = words }, function(result)
    if #result.rows == 0 then
      return say.line(words == "" and "Nothing was removed from this chat" or ("Nothing removed contains: " .. words))
    end
    local lines, at = {}, {}
    for _, row in ipairs(result.rows) do
      for _, line in ipairs(recalled(row)) do
        lines[#lines + 1] = line
        at[#lines] = row
      end
    end
    local title = words == "" and "Removed from the context" or ("Removed: " .. words)
    local footer = { "<CR> show", "r restore", "q close" }
    local bufnr, win = float.open({ title = title, lines = lines, footer = footer })
    vim.bo[bufnr].filetype = "codecompanion_recall"
    scratch.colour(bufnr, "codecompanion.chat.recall", function(line)
      return line:find("^       !") and "CodeCompanionWarning" or line:find("^ ") and "CodeCompanionHint" or nil
    end)
    vim.wo[win].cursorline = true
    local on = scratch.keys(bufnr, win, function(line)
      return at[line]
    end)
    on({ "<CR>", "K", "gf" }, "Show the original", function(row)
      originals.message(chat, row.id)
    end)
    on("r", "Restore", function(row)
      history.restore(chat, row.id, function()
        scratch.close(win)
        M.recall(chat, words)
      end)
    end)
  end)
end

return M

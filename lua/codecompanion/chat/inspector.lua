---What the model will see, one line per message: tokens, age, state. The sum is what the meter shows.

local api = vim.api
local status = require("codecompanion.chat.status")

local M = {}

local ns = api.nvim_create_namespace("codecompanion.chat.inspector")

---@param text string
---@param width integer
---@return string
local function cut(text, width)
  text = text:gsub("%s+", " ")
  if api.nvim_strwidth(text) <= width then
    return text .. (" "):rep(width - api.nvim_strwidth(text))
  end
  return vim.fn.strcharpart(text, 0, width - 1) .. "…"
end

---@param tokens integer
---@param total integer
---@return string
local function share(tokens, total)
  return total > 0 and ("%3d%%"):format(math.floor(tokens / total * 100 + 0.5)) or ""
end

---@param usd number?
---@return string
local function cost_text(usd)
  return type(usd) == "number" and ("$%.4f"):format(usd) or ""
end

---Cache and cost of a row, nothing at all where the provider has no cache and nobody knows the price.
---@param result table
---@return fun(cache: string, cost: string): string
local function bill(result)
  local priced = type(result.cost) == "number"
  local cached = vim.iter(result.rows):any(function(row)
    return (row.cache or "") ~= ""
  end)
  return function(cache, cost)
    return (cached and (" %5s"):format(cache) or "") .. (priced and (" %8s"):format(cost) or "")
  end
end

---The table as lines.
---@param result { rows: table[], total: integer, window: integer, cost?: number }
---@param exact boolean?
---@return string[]
function M.lines(result, exact)
  local billed = bill(result)
  local messages = #vim.tbl_filter(function(row)
    return row.role ~= "tools" -- the schemas are sent beside the messages
  end, result.rows)
  local lines = {
    ("# Next request: %s%s of %s tokens (%d%%), %d messages"):format(
      exact and "" or "~",
      status.short(result.total),
      status.short_window(result.window),
      result.window > 0 and math.floor(result.total / result.window * 100 + 0.5) or 0,
      messages
    ),
    "",
    " tokens  share" .. billed("cache", "cost") .. "  age  state       role       what",
  }
  for _, row in ipairs(result.rows) do
    local who = row.role .. (row.tag and row.tag ~= "" and ("/" .. row.tag) or "")
    local what = (row.name and row.name ~= "" and (row.name .. ": ") or "") .. (row.preview or "")
    lines[#lines + 1] = ("%7s   %s%s  %3s  %s %s %s"):format(
      status.short(row.tokens),
      share(row.tokens, result.total),
      billed(row.cache or "", cost_text(row.cost)),
      row.age and tostring(row.age) or "",
      cut((row.state == "pinned" and "⚑ " or "") .. (row.state or ""), 11),
      cut(who, 18),
      cut(what, 90)
    )
  end
  local cost = type(result.cost) == "number" and (", ~%s"):format(cost_text(result.cost)) or ""
  lines[#lines + 1] = ("%7s  sum%s"):format(status.short(result.total), cost)
  return lines
end

---Write the table into the float.
---@param bufnr integer
---@param lines string[]
---@param rows table[]
local function fill(bufnr, lines, rows)
  vim.bo[bufnr].modifiable = true
  api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  vim.bo[bufnr].modifiable = false
  api.nvim_buf_clear_namespace(bufnr, ns, 0, -1)
  api.nvim_buf_set_extmark(bufnr, ns, 0, 0, { line_hl_group = "CodeCompanionHeaderUser" })
  api.nvim_buf_set_extmark(bufnr, ns, 2, 0, { line_hl_group = "CodeCompanionTokens" })
  for index, row in ipairs(rows) do
    if row.state and row.state ~= "live" then
      local group = row.state == "cleared" and "CodeCompanionCleared"
        or row.state == "pinned" and "CodeCompanionPinned"
        or "CodeCompanionCompacted"
      api.nvim_buf_set_extmark(bufnr, ns, index + 2, 0, { line_hl_group = group })
    end
  end
end

---@param current { result: table }
---@return table? row What the cursor is on
local function row_under_cursor(current)
  return current.result.rows[api.nvim_win_get_cursor(0)[1] - 3]
end

---@param row? table
---@return string? id Of its message; the system prompt and the tools have none
local function message_id(row)
  local is_message = row and row.id and row.id ~= "" and row.role ~= "system" and row.role ~= "tools"
  return is_message and row.id or nil
end

---Ask again what the next request holds, and write it anew.
---@param chat CodeCompanion.Chat
---@param bufnr integer
---@param current { result: table }
local function refill(chat, bufnr, current)
  require("codecompanion.chat.session").request(chat, "inspect", {}, function(result)
    if api.nvim_buf_is_valid(bufnr) then
      current.result = result
      fill(bufnr, M.lines(result, chat.meter and chat.meter.exact), result.rows)
    end
  end)
end

---@param chat CodeCompanion.Chat
---@param bufnr integer
---@param current { result: table }
local function set_keys(chat, bufnr, current)
  local history = require("codecompanion.chat.history")

  local function id()
    return message_id(row_under_cursor(current))
  end

  local function refresh()
    refill(chat, bufnr, current)
  end

  local function map(lhs, desc, rhs)
    vim.keymap.set("n", lhs, rhs, { buffer = bufnr, nowait = true, desc = desc })
  end

  for _, key in ipairs({ "<CR>", "K", "gf" }) do
    map(key, "Show the message", function()
      if id() then
        history.show_original(chat, id())
      elseif row_under_cursor(current) then
        require("codecompanion.chat.actions").system_prompt(chat)
      end
    end)
  end
  map("p", "Pin, or unpin", function()
    if id() and row_under_cursor(current).state == "pinned" then
      history.unpin(chat, { item = id() }, refresh)
    elseif id() then
      history.pin(chat, { item = id() }, refresh)
    end
  end)
  map("r", "Restore the original", function()
    if id() then
      history.restore(chat, id(), refresh)
    end
  end)
  map("=", "Compare with the last request", function()
    local float = require("codecompanion.chat.float")
    require("codecompanion.chat.session").request(chat, "preview", { against = "last_request" }, float.show)
  end)
  map("c", "Clear the tool result", function()
    if id() then
      history.clear(chat, id(), refresh)
    end
  end)
  map("u", "Undo the newest change", function()
    history.undo(chat, nil, refresh)
  end)
  map("<C-r>", "Redo", function()
    history.redo(chat, nil, refresh)
  end)
end

---@param chat CodeCompanion.Chat
---@param result table
local function show(chat, result)
  local lines = M.lines(result, chat.meter and chat.meter.exact)
  local bufnr, win = require("codecompanion.chat.float").open({
    title = "What the model will see",
    lines = lines,
    width = 110,
    footer = "<CR> show · p pin · c clear · r restore · u undo · <C-r> redo · = compare · q close",
  })
  vim.bo[bufnr].filetype = "codecompanion_inspector"
  fill(bufnr, lines, result.rows)
  vim.wo[win].wrap = false
  vim.wo[win].cursorline = true
  api.nvim_win_set_cursor(win, { math.min(4, #lines), 0 })
  set_keys(chat, bufnr, { result = result })
end

---Open the inspector of a chat.
---@param chat CodeCompanion.Chat
function M.open(chat)
  require("codecompanion.chat.session").request(chat, "inspect", {}, function(result)
    show(chat, result)
  end)
end

return M

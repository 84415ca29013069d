---Shows a request message by message, either the next one or a sent one: tokens, age, state. The total of the next
---request equals the meter.

local api = vim.api
local fit = require("codecompanion.text.fit")
local float = require("codecompanion.screen.float")
local history = require("codecompanion.chat.wire.edit_view")
local numbers = require("codecompanion.text.numbers")
local originals = require("codecompanion.chat.lists.whole_text")
local session = require("codecompanion.chat.state.session")
local scratch = require("codecompanion.screen.scratch_buffer")

local M = {}

local WIDEST, NARROW = 180, 60
local HINTS = {
  "<CR> show",
  "p pin",
  "c clear",
  "u undo",
  "[ sent requests",
  "b body",
  "r restore",
  "= compare",
  "<C-r> redo",
  "q close",
}
local SENT_HINTS = { "<CR> show", "[ ] other requests", "b body", "q close" } -- a sent request cannot be changed
local MIN_WHAT, MIN_STATE = 16, 8 -- with less space for the description, the state is cut and the price omitted

---Return a cell of the table: one line with an exact width.
---@param text string
---@param width integer
---@return string
local function cell(text, width)
  local cut = fit.cut((text:gsub("%s+", " ")), width)
  return cut .. (" "):rep(width - api.nvim_strwidth(cut))
end

---Return a share as a rounded percentage; empty cells if that is 0.
---@param tokens integer
---@param total integer
---@return string
local function share(tokens, total)
  local percent = total > 0 and math.floor(100 * tokens / total + 0.5) or 0
  return percent > 0 and ("%3d %%"):format(percent) or (" "):rep(5)
end

---Return an amount; "" if it is unknown or rounded to zero.
---@param usd number?
---@return string
local function cost_text(usd)
  local text = type(usd) == "number" and ("$%.4f"):format(usd) or ""
  return text ~= "$0.0000" and text or ""
end

---Return cache use and cost of a row, or "" if the provider has no cache and the price is unknown.
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

---@param row table
---@return string
local function state_of(row)
  return (row.state == "pinned" and "⚑ " or "") .. (row.state or "")
end

---Words for tags of the plugin's own messages.
local WORDS = {
  compact_summary = "summary",
  editor_context = "editor",
  file_update = "update",
  gathered_context = "code",
  go_on = "continue",
  looking_at = "open file",
  memory_recall = "memory",
}

---Return the role of a message and the word for its tag, unless the state is the same word.
---@param row table
---@return string
local function role_of(row)
  local tag = row.tag or ""
  local word = WORDS[tag] or tag
  return row.role .. (word ~= "" and word ~= row.state and ("/" .. word) or "")
end

---Return the word for the tag of a message, or its role.
---@param row table
---@return string
local function short_role_of(row)
  return role_of(row):match("/(.+)$") or row.role
end

---Return the width of a column: its widest entry, within limits.
---@param title string
---@param rows table[]
---@param text fun(row: table): string
---@param most integer
---@return integer
local function column(title, rows, text, most)
  local width = #title
  for _, row in ipairs(rows) do
    width = math.max(width, api.nvim_strwidth(text(row)))
  end
  return math.min(width, most)
end

---Return the title of the table, which names the request.
---@param result { request?: integer, requests?: integer, turn?: string, asked?: string }
---@return string
local function title_of(result)
  if (result.request or 0) == 0 then
    return "Next request"
  end
  local about = (result.asked or "") ~= "" and result.asked or result.turn
  return ("Sent request %d of %d · %s"):format(result.request, result.requests, about)
end

---Return the size of the request, and its share of the window if that is known.
---@param result table
---@param exact boolean? Whether the size of the next request is exact; the result of a sent request includes this
---@param is_narrow boolean
---@return string
local function size_of(result, exact, is_narrow)
  if (result.request or 0) > 0 then
    exact = result.exact
  end
  local size = (exact and "" or "~") .. numbers.short(result.total)
  local unit = is_narrow and "" or " tokens"
  if result.window <= 0 then
    return size .. " tokens"
  end
  local window = ((result.guess or "") ~= "" and "~" or "") .. numbers.short_window(result.window)
  return ("%s of %s%s (%d %%)"):format(size, window, unit, numbers.percent(result.total / result.window))
end

---Return the table as lines.
---@param result { rows: table[], total: integer, window: integer, guess?: string, reserve: integer?, cost?: number }
---@param exact boolean?
---@param width? integer Available cells
---@return string[]
function M.lines(result, exact, width)
  width = width or 110
  local is_narrow = width < NARROW -- share and age are omitted first: the description of a message is more important
  local billed, rows = bill(result), result.rows
  local messages = #vim.tbl_filter(function(row)
    return row.role ~= "tools" -- the schemas are sent beside the messages
  end, rows)
  local states = column("state", rows, state_of, 11)
  local role = is_narrow and short_role_of or role_of
  local roles = column("role", rows, role, is_narrow and 9 or width < 100 and 14 or 20)
  if is_narrow and width - states - roles - api.nvim_strwidth(billed("", "")) - #" tokens    " < MIN_WHAT then
    states = math.min(states, MIN_STATE)
    billed = function()
      return ""
    end
  end
  local size, counted = "# " .. size_of(result, exact, is_narrow), numbers.counted(messages, "message")
  local has_tools = vim.iter(rows):any(function(row)
    return row.role == "tools" and row.tokens > 0
  end)
  local head = ("%s, %s%s"):format(size, counted, has_tools and " + tools" or "")
  local lines = {
    api.nvim_strwidth(head) <= width and head or size,
    "",
    (" tokens%s%s%s  %s %s what"):format(
      is_narrow and "" or "  share",
      billed("cache", "cost"),
      is_narrow and "" or "  age",
      cell("state", states),
      cell("role", roles)
    ),
  }
  local room = math.max(10, width - api.nvim_strwidth(lines[3]) + #"what")
  for _, row in ipairs(rows) do
    local name, preview = row.name or "", row.preview or ""
    local from = (row.source or "") ~= "" and ("[%s%s] "):format(row.narrows and "! " or "", row.source) or ""
    local what = from .. name .. (name ~= "" and preview ~= "" and ": " or "") .. preview
    lines[#lines + 1] = ("%7s%s%s%s  %s %s %s"):format(
      numbers.short(row.tokens),
      is_narrow and "" or ("  %s"):format(share(row.tokens, result.total)),
      billed(row.cache or "", cost_text(row.cost)),
      is_narrow and "" or ("  %3s"):format(row.age and tostring(row.age) or ""),
      cell(state_of(row), states),
      cell(role(row), roles),
      fit.cut((what:gsub("%s+", " ")), room)
    )
  end
  local cost = cost_text(result.cost) ~= "" and (", ~%s"):format(cost_text(result.cost)) or ""
  lines[#lines + 1] = ("%7s  sum%s"):format(numbers.short(result.total), cost)
  if (result.reserve or 0) > 0 then
    lines[#lines + 1] = ("%7s  reserved for the reply"):format(numbers.short(result.reserve))
  end
  for _, note in ipairs({ result.guess or "", result.note or "" }) do
    if note ~= "" then
      lines[#lines + 1] = ""
      vim.list_extend(lines, fit.wrap(note, width))
    end
  end
  return lines
end

local HEAD_LINES = 3
local HEADS = { [1] = "CodeCompanionHeaderUser", [3] = "CodeCompanionTokens" }
---Highlight groups by state; messages sent unchanged have none.
local GROUPS = { cleared = "CodeCompanionCleared", cut = "CodeCompanionCleared", pinned = "CodeCompanionPinned" }

---Write the table into the float.
---@param bufnr integer
---@param lines string[]
---@param rows table[]
local function fill(bufnr, lines, rows)
  scratch.write(bufnr, lines)
  scratch.colour(bufnr, "codecompanion.chat.inspector", function(_, number)
    local row = rows[number - HEAD_LINES]
    local is_changed = row and row.state and row.state ~= "live"
    return HEADS[number] or is_changed and (GROUPS[row.state] or "CodeCompanionCompacted") or nil
  end)
end

---@param current { result: table }
---@return table? row Row under the cursor
local function row_under_cursor(current)
  return current.result.rows[api.nvim_win_get_cursor(0)[1] - HEAD_LINES]
end

---@param row? table
---@return string? id Id of its message; the system prompt and the tools have none
local function message_id(row)
  local is_message = row and row.id and row.id ~= "" and row.role ~= "system" and row.role ~= "tools"
  return is_message and row.id or nil
end

---Rewrite the table for the width of its window.
---@param chat CodeCompanion.Chat
---@param bufnr integer
---@param result table
local function redraw(chat, bufnr, result)
  local win = vim.fn.bufwinid(bufnr)
  local width = win ~= -1 and api.nvim_win_get_width(win) or nil
  fill(bufnr, M.lines(result, chat.meter and chat.meter.exact, width), result.rows)
  if win ~= -1 then
    float.retitle(win, title_of(result))
  end
end

---Reload the messages of a request and rewrite the table.
---@param chat CodeCompanion.Chat
---@param bufnr integer
---@param current { result: table }
---@param request integer 0 = the next request
local function refill(chat, bufnr, current, request)
  session.request(chat, "inspect", { request = request }, function(result)
    if api.nvim_buf_is_valid(bufnr) then
      current.result = result
      redraw(chat, bufnr, result)
    end
  end)
end

---@param chat CodeCompanion.Chat
---@param bufnr integer
---@param current { result: table }
local function set_keys(chat, bufnr, current)
  local function request()
    return current.result.request or 0
  end

  ---@return string? id Id of a message that can be changed; messages of a sent request cannot
  local function id()
    return request() == 0 and message_id(row_under_cursor(current)) or nil
  end

  local function refresh()
    refill(chat, bufnr, current, request())
  end

  local function show_sent(item)
    session.request(chat, "show_request", { request = request(), item = item }, float.show)
  end

  local function map(keys, desc, action)
    scratch.map(bufnr, keys, desc, action)
  end

  map({ "<CR>", "K", "gf" }, "Show the message", function()
    local row = row_under_cursor(current)
    if request() > 0 then
      if row then
        show_sent(row.id)
      end
    elseif id() then
      originals.message(chat, id())
    elseif row then
      originals.system_prompt(chat)
    end
  end)
  map("b", "Show the body of the request", function()
    show_sent("")
  end)
  map("[", "Show the previous request, as it was sent", function()
    if request() ~= 1 then
      refill(chat, bufnr, current, request() == 0 and -1 or request() - 1)
    end
  end)
  map("]", "Show the next request", function()
    if request() > 0 then
      refill(chat, bufnr, current, request() == current.result.requests and 0 or request() + 1)
    end
  end)
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
    session.request(chat, "preview", { against = "last_request" }, float.show_rows)
  end)
  map("c", "Clear the tool result", function()
    if id() then
      history.clear(chat, id(), refresh)
    end
  end)
  for keys, act in pairs({ u = history.undo, ["<C-r>"] = history.redo }) do
    map(keys, keys == "u" and "Undo the newest change" or "Redo the last undone change", function()
      if request() == 0 then
        act(chat, nil, refresh)
      end
    end)
  end
end

---@param chat CodeCompanion.Chat
---@param result table
local function show(chat, result)
  local columns = math.min(vim.o.columns - 2, WIDEST)
  local lines = M.lines(result, chat.meter and chat.meter.exact, columns)
  local current = { result = result }
  local bufnr, win = float.open({
    title = title_of(result),
    lines = lines,
    width = 1,
    max_width = WIDEST,
    wrap = false,
    footer = function()
      return (current.result.request or 0) == 0 and HINTS or SENT_HINTS
    end,
    on_resize = function(bufnr)
      redraw(chat, bufnr, current.result)
    end,
  })
  vim.bo[bufnr].filetype = "codecompanion_inspector"
  redraw(chat, bufnr, result)
  vim.wo[win].cursorline = true
  api.nvim_win_set_cursor(win, { math.min(4, #lines), 0 })
  set_keys(chat, bufnr, current)
end

---Open the inspector of a chat.
---@param chat CodeCompanion.Chat
function M.open(chat)
  session.request(chat, "inspect", {}, function(result)
    show(chat, result)
  end)
end

return M

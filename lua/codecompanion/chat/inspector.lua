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

---The table as lines.
---@param result { rows: table[], total: integer, window: integer }
---@param exact boolean?
---@return string[]
function M.lines(result, exact)
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
    " tokens  share  age  state       role       what",
  }
  for _, row in ipairs(result.rows) do
    local who = row.role .. (row.tag and row.tag ~= "" and ("/" .. row.tag) or "")
    local what = (row.name and row.name ~= "" and (row.name .. ": ") or "") .. (row.preview or "")
    lines[#lines + 1] = ("%7s   %s  %3s  %s %s %s"):format(
      status.short(row.tokens),
      share(row.tokens, result.total),
      row.age and tostring(row.age) or "",
      cut(row.state or "", 11),
      cut(who, 18),
      cut(what, 90)
    )
  end
  lines[#lines + 1] = ("%7s  sum"):format(status.short(result.total))
  return lines
end

---@param chat CodeCompanion.Chat
---@param result table
local function show(chat, result)
  local lines = M.lines(result, chat.meter and chat.meter.exact)
  local bufnr, win = require("codecompanion.chat.float").open({
    title = "What the model will see",
    lines = lines,
    width = 110,
    footer = "<CR> show · q close",
  })
  vim.bo[bufnr].filetype = "codecompanion_inspector"
  api.nvim_buf_set_extmark(bufnr, ns, 0, 0, { line_hl_group = "CodeCompanionHeaderUser" })
  api.nvim_buf_set_extmark(bufnr, ns, 2, 0, { line_hl_group = "CodeCompanionTokens" })
  for index, row in ipairs(result.rows) do
    if row.state and row.state ~= "live" then
      local group = row.state == "cleared" and "CodeCompanionCleared" or "CodeCompanionCompacted"
      api.nvim_buf_set_extmark(bufnr, ns, index + 2, 0, { line_hl_group = group })
    end
  end
  vim.wo[win].wrap = false
  vim.wo[win].cursorline = true
  api.nvim_win_set_cursor(win, { math.min(4, #lines), 0 })
  vim.keymap.set("n", "<CR>", function()
    local row = result.rows[api.nvim_win_get_cursor(0)[1] - 3]
    if row and (row.role == "system" or row.role == "tools") then
      require("codecompanion.chat.actions").system_prompt(chat)
    elseif row and row.id and row.id ~= "" then
      require("codecompanion.chat.session").request(
        chat,
        "show_original",
        { item = row.id },
        require("codecompanion.chat.float").show
      )
    end
  end, { buffer = bufnr, desc = "Show the message" })
end

---Open the inspector of a chat.
---@param chat CodeCompanion.Chat
function M.open(chat)
  require("codecompanion.chat.session").request(chat, "inspect", {}, function(result)
    show(chat, result)
  end)
end

return M

---Asks a question that is answered with one key, in a small float at the cursor or clear of given rows. Works from
---Insert mode and blocks nothing.

local api = vim.api

local scratch = require("codecompanion.screen.scratch_buffer")

local M = {}

---@class CodeCompanion.Answer
---@field key string One character
---@field label string One or two words that contain the key, shown as `[y]es`

---@class CodeCompanion.Confirmation
---@field say fun(text: string) Changes the question
---@field close fun() Closes the float without an answer
---@field is_open fun(): boolean

local WIDEST = 100
local MAX_NAME = 40 -- cells of the question in the name of its buffer

---Return a label such as `[y]es` or `yes, then [c]ontinue`.
---@param answer CodeCompanion.Answer
---@return string
local function shown(answer)
  local at = answer.label:find(answer.key, 1, true)
  if not at then
    return ("[%s] %s"):format(answer.key, answer.label)
  end
  return ("%s[%s]%s"):format(answer.label:sub(1, at - 1), answer.key, answer.label:sub(at + #answer.key))
end

---Wrap the question and its answers into lines; an answer is never split.
---@param question string
---@param answers CodeCompanion.Answer[]
---@param width integer
---@return string[]
local function layout(question, answers, width)
  local lines, line = {}, ""
  local function add(word, gap)
    if line ~= "" and api.nvim_strwidth(line .. gap .. word) > width then
      lines[#lines + 1], line = line, word
    else
      line = line == "" and word or (line .. gap .. word)
    end
  end
  for word in question:gmatch("%S+") do
    add(word, " ")
  end
  local keys = table.concat(vim.tbl_map(shown, answers), "  ")
  if line ~= "" and api.nvim_strwidth(line .. "  " .. keys) > width then
    lines[#lines + 1], line = line, "" -- the answers stay together
  end
  for _, answer in ipairs(answers) do
    add(shown(answer), "  ")
  end
  lines[#lines + 1] = line
  return lines
end

---@param bufnr integer
---@param lines string[]
local function fill(bufnr, lines)
  scratch.write(bufnr, lines)
  local ns = api.nvim_create_namespace("codecompanion.chat.confirm")
  for row, line in ipairs(lines) do
    for from, to in line:gmatch("()%[%S%]()") do
      local opts = { end_col = to - 1, hl_group = "CodeCompanionApprovalKey" }
      api.nvim_buf_set_extmark(bufnr, ns, row - 1, from - 1, opts)
    end
  end
end

---@param lines string[]
---@param clear_of? fun(): CodeCompanion.Rows?
---@return table
local function window_config(lines, clear_of)
  local width = 1
  for _, line in ipairs(lines) do
    width = math.max(width, api.nvim_strwidth(line))
  end
  local height, clear = math.min(#lines, math.max(vim.o.lines - 4, 1)), clear_of and clear_of()
  local space = vim.o.lines - vim.o.cmdheight - 1
  return {
    relative = clear and "editor" or "cursor",
    row = clear and require("codecompanion.screen.clear_of").row(clear, height + 2, space) or 1,
    col = clear and math.max(0, math.min(clear.column, vim.o.columns - width - 2)) or 0,
    width = math.min(width, math.max(vim.o.columns - 2, 1)),
    height = height,
    style = "minimal",
    border = "rounded",
    zindex = 150,
  }
end

---Ignore every key that is not an answer, so that keys typed ahead do not reach another buffer.
---@param bufnr integer
local function swallow_other_keys(bufnr)
  for code = 33, 126 do
    local key = string.char(code)
    if key ~= ":" then
      local lhs = key == "<" and "<lt>" or key == "|" and "<Bar>" or key
      api.nvim_buf_set_keymap(bufnr, "n", lhs, "<Nop>", { nowait = true })
    end
  end
end

---Ask the question. `<Esc>`, `q`, `<C-c>` and leaving the window answer nil.
---@param question string
---@param answers CodeCompanion.Answer[]
---@param on_answer fun(key?: string)
---@param clear_of? fun(): CodeCompanion.Rows? Returns rows of the screen that stay readable if possible
---@return CodeCompanion.Confirmation
function M.ask(question, answers, on_answer, clear_of)
  local from, insert = api.nvim_get_current_win(), api.nvim_get_mode().mode:sub(1, 1) == "i"
  local at_end = insert and vim.fn.col(".") >= vim.fn.col("$")
  local width = math.max(10, math.min(vim.o.columns - 2, WIDEST))
  local lines = layout(question, answers, width)
  local bufnr = scratch.new({})
  scratch.name(bufnr, require("codecompanion.text.fit").cut_words(question, MAX_NAME))
  fill(bufnr, lines)
  local win = api.nvim_open_win(bufnr, true, window_config(lines, clear_of))
  vim.wo[win].wrap = false
  vim.cmd.stopinsert()
  local open = true

  local function close(key, answered)
    if not open then
      return
    end
    open = false
    if api.nvim_win_is_valid(win) then
      api.nvim_win_close(win, true)
    end
    if answered and api.nvim_win_is_valid(from) then
      api.nvim_set_current_win(from)
      if insert then
        vim.cmd.startinsert({ bang = at_end })
      end
    end
    on_answer(key)
  end

  swallow_other_keys(bufnr)
  for _, answer in ipairs(answers) do
    scratch.map(bufnr, answer.key, answer.label, function()
      close(answer.key, true)
    end)
  end
  scratch.map(bufnr, { "<Esc>", "q", "<C-c>" }, "Cancel", function()
    close(nil, true)
  end)
  api.nvim_create_autocmd({ "WinLeave", "BufWipeout" }, {
    buffer = bufnr,
    callback = function()
      vim.schedule(function()
        close(nil, false)
      end)
    end,
  })
  return {
    say = function(text)
      if open and api.nvim_buf_is_valid(bufnr) then
        local fresh = layout(text, answers, width)
        fill(bufnr, fresh)
        local config = window_config(fresh, clear_of)
        api.nvim_win_set_width(win, config.width)
        api.nvim_win_set_height(win, config.height)
      end
    end,
    close = function()
      close(nil, true)
    end,
    is_open = function()
      return open
    end,
  }
end

return M

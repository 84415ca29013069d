---Asks questions through `vim.ui.select` and `vim.ui.input`, in Normal mode and with `<C-c>` handled as a cancellation.

local api = vim.api
local float = require("codecompanion.screen.float")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")
local scratch = require("codecompanion.screen.scratch_buffer")

local M = {}

---Run `action` in Normal mode: a list opened from Insert mode would receive typed text.
---@param action fun()
function M.in_normal_mode(action)
  if api.nvim_get_mode().mode:sub(1, 1) ~= "i" then
    return action()
  end
  api.nvim_create_autocmd("InsertLeave", {
    once = true,
    callback = function()
      vim.schedule(action)
    end,
  })
  vim.cmd.stopinsert()
end

---Call a function of `vim.ui` with a callback that is called exactly once, even if the user interrupts it.
---@param ask fun(done: fun(...))
---@param callback fun(...)
local function guarded(ask, callback)
  local answered = false
  local function done(...)
    if not answered then
      answered = true
      callback(...)
    end
  end
  local ok, problem = pcall(ask, done)
  if ok then
    return
  end
  if answered or not tostring(problem):find("Keyboard interrupt", 1, true) then
    return say.line(tostring(problem), severity.ERROR)
  end
  done(nil)
end

---Return whether `vim.ui.select` is Neovim's own, which numbers the lines and blocks at a prompt.
---@return boolean
function M.is_builtin_select()
  return type(vim.ui.select) == "function" and debug.getinfo(vim.ui.select, "S").source:find("vim/ui", 1, true) ~= nil
end

---@class CodeCompanion.ListKey
---@field key string
---@field label string
---@field action fun(item: any, close: fun())

---Return the hints below a list.
---@param options { many?: boolean, keys?: CodeCompanion.ListKey[], footer?: string[] }
---@return string[]
local function hints(options)
  if options.footer then
    return options.footer
  end
  local found = { "<CR> choose" }
  if options.many then
    found[#found + 1] = "<Tab> mark"
  end
  for _, key in ipairs(options.keys or {}) do
    found[#found + 1] = key.key .. " " .. key.label
  end
  return vim.list_extend(found, { "/ search", "q close" })
end

---Let `<Tab>` mark lines of a list.
---@param bufnr integer
---@return table<integer, integer> marked Extmarks by line
local function allow_marks(bufnr)
  local ns, marked = api.nvim_create_namespace("codecompanion.chat.choose"), {}
  scratch.map(bufnr, "<Tab>", "Mark, or unmark", function()
    local line = api.nvim_win_get_cursor(0)[1]
    if marked[line] then
      api.nvim_buf_del_extmark(bufnr, ns, marked[line])
      marked[line] = nil
    else
      marked[line] = api.nvim_buf_set_extmark(bufnr, ns, line - 1, 0, {
        virt_text = { { "● ", "CodeCompanionApprovalKey" } },
        virt_text_pos = "inline",
      })
    end
    api.nvim_win_set_cursor(0, { math.min(line + 1, api.nvim_buf_line_count(bufnr)), 0 })
  end)
  return marked
end

---@class CodeCompanion.ListOptions
---@field title string
---@field many? boolean Several items can be marked
---@field width? number
---@field wrap? boolean
---@field hanging? integer Indentation of the further rows of a wrapped line
---@field keys? CodeCompanion.ListKey[]
---@field accept? fun(item: any, close: fun(items?: any[])) Handles `<CR>`; unless it calls `close` the list stays open
---@field layout? fun(): string[], integer Returns as many lines as before, and their width, after the editor was
---resized
---@field on_resize? fun(bufnr: integer)
---@field clear_of? fun(): CodeCompanion.Rows?
---@field footer? string[] Replaces the hints below the list

---Open a list in a float, in place of Neovim's own: non-blocking, searchable, and with markable items.
---@param lines string[]
---@param at fun(line: integer): any Returns the item of a line, or nil
---@param options CodeCompanion.ListOptions
---@param done fun(items?: any[])
---@return integer bufnr
function M.list(lines, at, options, done)
  local from = api.nvim_get_current_win()
  local bufnr, win = float.open({
    title = options.title,
    lines = lines,
    wrap = options.wrap == true,
    hanging = options.hanging or 2,
    width = options.width or M.width(lines, options),
    footer = hints(options),
    layout = options.layout,
    on_resize = options.on_resize,
    clear_of = options.clear_of,
  })
  vim.wo[win].cursorline = true
  local on = scratch.keys(bufnr, win, at)
  local marked, open = options.many and allow_marks(bufnr) or {}, true

  local function close(items)
    if open then
      open = false
      if api.nvim_win_is_valid(win) then
        scratch.close(win, api.nvim_get_current_win() == win and from or nil)
      end
      done(items)
    end
  end

  scratch.map(bufnr, "<CR>", "Choose", function()
    local items = {}
    for line = 1, #lines do
      items[#items + 1] = marked[line] and at(line) or nil
    end
    items = #items > 0 and items or { at(api.nvim_win_get_cursor(0)[1]) }
    if #items > 0 and options.accept then
      options.accept(items[1], close)
    elseif #items > 0 then
      close(items)
    end
  end)
  scratch.map(bufnr, { "q", "<Esc>", "<C-c>" }, "Cancel", function()
    close(nil)
  end)
  for _, key in ipairs(options.keys or {}) do
    on(key.key, key.label, function(item)
      key.action(item, close)
    end)
  end
  api.nvim_create_autocmd("BufWipeout", {
    buffer = bufnr,
    once = true,
    callback = function()
      vim.schedule(close)
    end,
  })
  api.nvim_create_autocmd("WinEnter", { -- working in another window cancels the choice
    callback = function()
      local here = api.nvim_get_current_win()
      if open and here ~= win and api.nvim_win_get_config(here).relative == "" then
        vim.schedule(close)
      end
      return not open
    end,
  })
  return bufnr
end

---Return the width of the longest line, with space for a mark, the title and the hints below.
---@param lines string[]
---@param options? CodeCompanion.ListOptions
---@return integer
function M.width(lines, options)
  local width = options and api.nvim_strwidth(table.concat({ "more below", unpack(hints(options)) }, " · ")) + 2 or 50
  width = math.max(width, api.nvim_strwidth(options and options.title or "") + 2)
  for _, line in ipairs(lines) do
    width = math.max(width, api.nvim_strwidth(line) + 2)
  end
  return width
end

---@param items any[]
---@param options table
---@param done fun(items?: any[])
local function own_list(items, options, done)
  local lines, by_line, group = {}, {}, nil
  for _, item in ipairs(items) do
    local heading = options.group_of and options.group_of(item)
    if heading and heading ~= group then
      vim.list_extend(lines, #lines > 0 and { "", heading } or { heading })
    end
    group = heading
    lines[#lines + 1] = ((options.format_item or tostring)(item):gsub("%s*\n%s*", " "))
    by_line[#lines] = item
  end
  local bufnr = M.list(lines, function(line)
    return by_line[line]
  end, {
    title = options.prompt or "Choose",
    many = options.many,
    wrap = true,
    hanging = options.hanging,
    clear_of = options.clear_of,
  }, done)
  local ns, first, current = api.nvim_create_namespace("codecompanion.chat.choose_dim"), nil, nil
  for line, text in ipairs(lines) do
    local item = by_line[line]
    local colour = not item and text ~= "" and "CodeCompanionHeaderModel"
    if item and options.is_dim and options.is_dim(item) then
      colour = "CodeCompanionHint"
    end
    if colour then
      api.nvim_buf_set_extmark(bufnr, ns, line - 1, 0, { end_row = line, hl_group = colour })
    end
    first = first or item and line
    local starts_here = options.starts_at or options.is_current
    current = current or item and starts_here and starts_here(item) and line
  end
  api.nvim_win_set_cursor(0, { current or first or 1, 0 })
end

---Choose an item. Our own list also supports `group_of(item)`, the heading above adjacent items, `is_dim(item)`,
---`is_current(item)`, where the cursor starts unless `starts_at(item)` is given, `hanging` and `clear_of()`.
---@generic T
---@param items T[]
---@param options table As for `vim.ui.select`
---@param on_choice fun(item?: T) nil if nothing was chosen
function M.select(items, options, on_choice)
  M.select_many(items, vim.tbl_extend("force", options, { many = false }), function(chosen)
    on_choice(chosen and chosen[1])
  end)
end

---Choose several items if the picker supports it, otherwise one. Neovim's own picker is replaced by ours, which
---supports it.
---@generic T
---@param items T[]
---@param options table As for `vim.ui.select`
---@param on_choice fun(items?: T[])
function M.select_many(items, options, on_choice)
  M.in_normal_mode(function()
    if M.is_builtin_select() then
      return own_list(items, vim.tbl_extend("keep", options, { many = true }), on_choice)
    end
    guarded(function(done)
      vim.ui.select(items, options, function(item)
        done(item ~= nil and { item } or nil)
      end)
    end, on_choice)
  end)
end

---Clear the question that Neovim's own `vim.ui.input` leaves on the command line, unless the next one is already shown.
function M.forget_prompt()
  vim.schedule(function() -- a silent mapping would keep it from being overwritten
    if not vim.api.nvim_get_mode().mode:find("^[cr]") then
      say.nothing()
    end
  end)
end

---@param options table As for `vim.ui.input`
---@param on_text fun(text?: string) nil if it was cancelled
function M.input(options, on_text)
  M.in_normal_mode(function()
    guarded(function(done)
      vim.ui.input(options, function(text)
        M.forget_prompt()
        done(text)
      end)
    end, on_text)
  end)
end

return M

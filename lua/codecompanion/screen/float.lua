---Opens floating windows that display text and close with `q` or `<Esc>`; `g?` lists their keys.

local api = vim.api

local numbers = require("codecompanion.text.numbers")
local scratch = require("codecompanion.screen.scratch_buffer")

local M = {}

local GROUP = "codecompanion.float."
local MIN_WIDTH = 76
---Minimum width of a float that stays within the window of the rows it leaves readable.
local MIN_WIDTH_BESIDE = 50
local SHARE = 0.8
local MEASURED_LINES = 500 -- more lines fill the screen anyway

---@class CodeCompanion.FloatOptions
---@field title string
---@field lines string[]
---@field filetype? string Highlighted with treesitter if there is a parser, otherwise with syntax
---@field footer? string|string[]|fun(width: integer): string[] Hints; those that do not fit are omitted, except the
---last one
---@field max_width? integer Maximum width in columns; defaults to the editor width
---@field wrap? boolean Whether long lines wrap; true by default
---@field hanging? integer Indentation of wrapped lines
---@field on_resize? fun(bufnr: integer) Called after the float was resized
---@field layout? fun(): string[], integer Returns lines and width after the editor was resized
---@field width? number Share of the editor, or columns; four fifths by default
---@field clear_of? fun(): CodeCompanion.Rows? Returns rows of the screen that stay readable if possible

---@param size number
---@param whole integer
---@return integer
local function cells(size, whole)
  return size <= 1 and math.floor(size * whole) or math.floor(size)
end

---Highlight the text with treesitter, or with classic syntax if there is no parser.
---@param bufnr integer
---@param filetype string
function M.highlight(bufnr, filetype)
  if filetype == "" or filetype == "text" then
    return
  end
  local lang = vim.treesitter.language.get_lang(filetype) or filetype
  if not pcall(vim.treesitter.start, bufnr, lang) then
    vim.bo[bufnr].syntax = filetype
  end
end

---Return how many rows the lines take when wrapped; stops counting at `enough`.
---@param lines string[]
---@param width integer
---@param enough integer
---@return integer
local function wrapped_rows(lines, width, enough)
  local fit, rows = require("codecompanion.text.fit"), 0
  for _, line in ipairs(lines) do
    -- words are not split, so a wrapped line may take slightly more than its width
    local cells_of_line = vim.fn.strdisplaywidth(fit.without_nul(line))
    rows = rows + math.max(1, math.ceil(cells_of_line / (cells_of_line > width and width * 0.9 or width)))
    if rows > enough then
      break
    end
  end
  return rows
end

---Return the footer: as many hints as fit, always including the last one; while more text follows, `more below`, or `↓`
---if space is short.
---@param hints string[]
---@param more boolean
---@param width integer
---@return string
local function footer_text(hints, more, width)
  local parts = vim.list_slice(hints)
  if more then
    table.insert(parts, 1, "more below")
  end
  local function fits()
    return api.nvim_strwidth(table.concat(parts, " · ")) + 2 <= width
  end
  if more and not fits() then
    parts[1] = "↓"
  end
  while #parts > 1 and not fits() do
    table.remove(parts, #parts - 1)
  end
  return " " .. table.concat(parts, " · ") .. " "
end

---Return whether the last line is not fully visible.
---@param win integer
---@return boolean
local function has_more(win)
  local last = api.nvim_buf_line_count(api.nvim_win_get_buf(win))
  if vim.fn.line("w$", win) < last then
    return true
  end
  local top = vim.fn.line("w0", win) - 1
  local view = api.nvim_win_call(win, vim.fn.winsaveview)
  local rows = api.nvim_win_text_height(win, { start_row = top }).all - (view.skipcol > 0 and 1 or 0)
  return vim.wo[win].wrap and rows > api.nvim_win_get_height(win)
end

---Scroll back if there are empty rows below the last line, as after `<C-f>` at the end of the text.
---@param win integer
local function fill_window(win)
  if not api.nvim_win_is_valid(win) or vim.fn.line("w$", win) < api.nvim_buf_line_count(api.nvim_win_get_buf(win)) then
    return
  end
  local top, height = vim.fn.line("w0", win), api.nvim_win_get_height(win)
  local function rows_from(line)
    return api.nvim_win_text_height(win, { start_row = line - 1 }).all
  end
  local wanted = top
  while wanted > 1 and rows_from(wanted - 1) <= height do
    wanted = wanted - 1
  end
  if wanted < top then
    api.nvim_win_call(win, function()
      vim.fn.winrestview({ topline = wanted })
    end)
  end
end

---Return the width of a float without a width of its own.
---@return integer
function M.default_width()
  return math.max(10, math.min(math.max(MIN_WIDTH, math.floor(vim.o.columns * SHARE)), vim.o.columns - 2))
end

---Return the row of a float: centred, or clear of the rows that it must not cover.
---@param options CodeCompanion.FloatOptions
---@param height integer Without the border
---@param rows integer Rows of the screen that the float may use
---@return integer
local function row_of(options, height, rows)
  local clear = options.clear_of and options.clear_of()
  if clear then
    return require("codecompanion.screen.clear_of").row(clear, height + 2, rows)
  end
  return math.max(0, math.floor((rows - height - 2) / 2))
end

---Return the position of the float: centred, within the available space.
---@param options CodeCompanion.FloatOptions
---@param lines string[]
---@return table
local function place(options, lines)
  local columns, rows = vim.o.columns, vim.o.lines - vim.o.cmdheight - 1
  local wanted = options.width and cells(options.width, columns) or M.default_width()
  local clear = options.clear_of and options.clear_of()
  local most = clear and math.max(MIN_WIDTH_BESIDE, clear.width - 2) or columns
  local width = math.max(10, math.min(wanted, columns - 2, options.max_width or columns, most))
  local needed = options.wrap == false and #lines or wrapped_rows(lines, width, rows)
  local height = math.max(1, math.min(needed, rows - 2))
  return {
    relative = "editor",
    width = width,
    height = height,
    row = row_of(options, height, rows),
    col = math.max(0, math.min(clear and clear.column or math.floor((columns - width - 2) / 2), columns - width - 2)),
  }
end

---Set the height to the rows of the text in its window, which may be slightly less than computed before drawing.
---@param options CodeCompanion.FloatOptions
---@param win integer
local function fit_height(options, win)
  local count = api.nvim_buf_line_count(api.nvim_win_get_buf(win))
  if options.wrap == false or count > MEASURED_LINES then
    return
  end
  local rows = vim.o.lines - vim.o.cmdheight - 1
  local height = math.max(1, math.min(api.nvim_win_text_height(win, {}).all, rows - 2))
  if height ~= api.nvim_win_get_height(win) then
    local row, col = row_of(options, height, rows), api.nvim_win_get_config(win).col
    api.nvim_win_set_config(win, { relative = "editor", height = height, row = row, col = col })
  end
end

---Update size and footer when the window scrolls or the editor is resized.
---@param options CodeCompanion.FloatOptions
---@param bufnr integer
---@param win integer
local function follow(options, bufnr, win)
  local shown
  local function refoot()
    if not options.footer or not api.nvim_win_is_valid(win) then
      return
    end
    local hints, width = options.footer, api.nvim_win_get_width(win)
    if type(hints) == "function" then
      hints = hints(width)
    end
    hints = type(hints) == "string" and { hints } or hints --[=[@as string[]]=]
    local text = footer_text(hints, has_more(win), width)
    if text ~= shown then
      shown = text
      api.nvim_win_set_config(win, { footer = text, footer_pos = "right" })
    end
  end
  local group = api.nvim_create_augroup(GROUP .. win, {})
  api.nvim_create_autocmd("WinScrolled", {
    group = group,
    pattern = tostring(win),
    callback = function()
      vim.schedule(function() -- within the event, Neovim would not notice that the window scrolled back
        fill_window(win)
      end)
      refoot()
    end,
  })
  api.nvim_create_autocmd("VimResized", {
    group = group,
    callback = function()
      if api.nvim_win_is_valid(win) then
        if options.layout then
          local lines
          lines, options.width = options.layout()
          scratch.write(bufnr, lines)
        end
        api.nvim_win_set_config(win, place(options, api.nvim_buf_get_lines(bufnr, 0, -1, false)))
        fit_height(options, win)
        if options.on_resize then
          options.on_resize(bufnr)
        end
        refoot()
      end
    end,
  })
  api.nvim_create_autocmd("BufWipeout", {
    buffer = bufnr,
    once = true,
    callback = function()
      pcall(api.nvim_del_augroup_by_id, group)
    end,
  })
  refoot()
end

---Close all floats.
function M.stop()
  for _, win in ipairs(api.nvim_list_wins()) do
    if pcall(api.nvim_get_autocmds, { group = GROUP .. win }) then
      api.nvim_win_close(win, true)
    end
  end
end

---Show lines in a float. Leaves Insert mode, because the float is not editable.
---@param options CodeCompanion.FloatOptions
---@return integer bufnr
---@return integer win
function M.open(options)
  vim.cmd.stopinsert()
  local bufnr, from = scratch.new(options.lines), api.nvim_get_current_win()
  scratch.name(bufnr, options.title)
  local config = place(options, options.lines)
  local title = require("codecompanion.text.fit").cut((options.title:gsub("%s+", " ")), config.width - 2)
  local looks = { border = "rounded", style = "minimal", title = " " .. title .. " " }
  local win = api.nvim_open_win(bufnr, true, vim.tbl_extend("force", config, looks))
  vim.wo[win].wrap = options.wrap ~= false
  if options.wrap == false then
    vim.wo[win].list = true
    vim.opt_local.listchars = { extends = "…", precedes = "…", tab = "  " }
  end
  vim.opt_local.fillchars:append({ lastline = " " }) -- no @@@ in a line that continues below; the footer says so
  vim.wo[win].linebreak = true
  vim.wo[win].breakindent = true
  vim.wo[win].breakindentopt = "shift:" .. (options.hanging or 0)
  fit_height(options, win)
  M.highlight(bufnr, options.filetype or "")
  scratch.map(bufnr, { "q", "<Esc>" }, "Close", function()
    scratch.close(win, from)
  end)
  scratch.map(bufnr, "g?", "Show the keys", function()
    local rows = scratch.described(bufnr)
    M.show_keys(options.title, vim.list_extend(vim.list_slice(rows, 3), vim.list_slice(rows, 1, 2)))
  end)
  follow(options, bufnr, win)
  return bufnr, win
end

---List keys with their descriptions.
---@param title string
---@param rows { keys: string, text: string }[]
function M.show_keys(title, rows)
  local column = 0
  for _, row in ipairs(rows) do
    column = math.max(column, api.nvim_strwidth(row.keys))
  end
  local lines = vim.tbl_map(function(row)
    return ("  %s%s  %s"):format(row.keys, (" "):rep(column - api.nvim_strwidth(row.keys)), row.text)
  end, rows)
  local bufnr, win = M.open({ title = title, lines = lines, footer = { "q close" }, hanging = column + 2 })
  scratch.map(bufnr, "g?", "Close", function()
    scratch.close(win)
  end)
end

---Recompute the footer of an open float.
---@param win integer
local function refoot(win)
  api.nvim_exec_autocmds("WinScrolled", { group = GROUP .. win, pattern = tostring(win) })
end

---Replace the lines of an open float and update its footer; its position and the cursor are kept.
---@param win integer
---@param lines string[]
function M.update(win, lines)
  if not api.nvim_win_is_valid(win) then
    return
  end
  local bufnr = api.nvim_win_get_buf(win)
  local view = api.nvim_win_call(win, vim.fn.winsaveview)
  scratch.write(bufnr, lines)
  local top = api.nvim_win_get_position(win)[1]
  local room = math.max(1, vim.o.lines - vim.o.cmdheight - 3 - top)
  local rows = vim.wo[win].wrap and wrapped_rows(lines, api.nvim_win_get_width(win), room) or #lines
  api.nvim_win_set_height(win, math.max(1, math.min(rows, room)))
  view.lnum = math.min(view.lnum, #lines)
  api.nvim_win_call(win, function()
    vim.fn.winrestview(view)
  end)
  refoot(win)
end

---Show a table with one line per message: columns stay aligned, only headings wrap.
---@param result { title: string, text: string, filetype: string }
function M.show_rows(result)
  local lines, widest = {}, MIN_WIDTH
  local room = math.max(vim.o.columns - 4, 20)
  for _, line in ipairs(vim.split(result.text, "\n", { plain = true })) do
    if vim.startswith(line, "# ") then
      for _, part in ipairs(require("codecompanion.text.fit").wrap(line:sub(3), room - 2)) do
        lines[#lines + 1] = "# " .. part
      end
    else
      lines[#lines + 1] = line
    end
    widest = math.max(widest, api.nvim_strwidth(lines[#lines]))
  end
  local count = numbers.counted(#lines, "line")
  local shown = { title = result.title, lines = lines, filetype = result.filetype, wrap = false, width = widest }
  M.open(vim.tbl_extend("error", shown, { footer = { count, "q close" } }))
end

---Update the footer of an open float.
---@param win integer
function M.refoot(win)
  api.nvim_exec_autocmds("WinScrolled", { group = GROUP .. win, pattern = tostring(win) })
end

---Change the title of an open float, and update its footer.
---@param win integer
---@param title string
function M.retitle(win, title)
  local room = api.nvim_win_get_width(win) - 2
  api.nvim_win_set_config(win, { title = " " .. require("codecompanion.text.fit").cut(title, room) .. " " })
  scratch.name(api.nvim_win_get_buf(win), title)
  M.refoot(win)
end

---Show long text from the history.
---@param result { title: string, text: string, filetype: string, state: string }
function M.show(result)
  local title = result.title
  if result.state and result.state ~= "" and result.state ~= "live" then
    title = title .. " · " .. result.state
  end
  local text = (result.text:gsub("\r\n", "\n"))
  local lines = vim.split(text, "\n", { plain = true })
  -- the summary of a tool result counts only the lines that are output
  local size = (result.summary or "") ~= "" and result.summary or numbers.counted(#lines, "line")
  M.open({ title = title, lines = lines, filetype = result.filetype, footer = { size, "q close" } })
end

return M

---Floating windows that show something and close with `q` or `<Esc>`.

local api = vim.api

local M = {}

---@class CodeCompanion.FloatOptions
---@field title string
---@field lines string[]
---@field filetype? string Highlighted with treesitter where there is a parser, else with syntax
---@field footer? string
---@field width? number Share of the editor, or columns

---@param size number
---@param whole integer
---@return integer
local function cells(size, whole)
  return size <= 1 and math.floor(size * whole) or math.floor(size)
end

---Colours for the text: treesitter, or the classic syntax for what has no parser.
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

---How many rows the lines take when they are wrapped; not counted beyond `enough`.
---@param lines string[]
---@param width integer
---@param enough integer
---@return integer
local function wrapped_rows(lines, width, enough)
  local rows = 0
  for _, line in ipairs(lines) do
    -- words are not cut, so a wrapped line may take a little more than its width
    local cells_of_line = vim.fn.strdisplaywidth(line)
    rows = rows + math.max(1, math.ceil(cells_of_line / (cells_of_line > width and width * 0.9 or width)))
    if rows > enough then
      break
    end
  end
  return rows
end

---@param options CodeCompanion.FloatOptions
---@return integer bufnr
---@return integer win
function M.open(options)
  local bufnr, from = api.nvim_create_buf(false, true), api.nvim_get_current_win()
  api.nvim_buf_set_lines(bufnr, 0, -1, false, options.lines)
  vim.bo[bufnr].bufhidden = "wipe"
  vim.bo[bufnr].modifiable = false
  local columns, rows = vim.o.columns, vim.o.lines - vim.o.cmdheight - 1
  local width = math.max(20, math.min(cells(options.width or 0.8, columns), columns - 4))
  local wanted = wrapped_rows(options.lines, width, rows)
  local height = math.max(1, math.min(wanted, rows - 4))
  local footer = options.footer
  if footer and wanted > height then
    footer = "more below · " .. footer
  end
  local config = {
    relative = "editor",
    width = width,
    height = height,
    row = math.max(0, math.floor((rows - height) / 2) - 1),
    col = math.floor((columns - width) / 2),
    border = "rounded",
    style = "minimal",
    title = " " .. vim.fn.strcharpart(options.title, 0, width - 4) .. " ",
    footer = footer and (" " .. footer .. " ") or nil,
    footer_pos = footer and "right" or nil,
  }
  local win = api.nvim_open_win(bufnr, true, config)
  vim.wo[win].wrap = true
  vim.wo[win].linebreak = true
  M.highlight(bufnr, options.filetype or "")
  for _, key in ipairs({ "q", "<Esc>" }) do
    vim.keymap.set("n", key, function()
      if api.nvim_win_is_valid(win) then
        api.nvim_win_close(win, true)
      end
      if api.nvim_win_is_valid(from) then
        api.nvim_set_current_win(from) -- not always the one that Neovim would choose
      end
    end, { buffer = bufnr, nowait = true, desc = "Close" })
  end
  return bufnr, win
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
  M.open({ title = title, lines = lines, filetype = result.filetype, footer = ("%d lines · q close"):format(#lines) })
end

return M

---Computes the size of a chat window, and the layout to use if there is too little space, from the editor's size and
---the options.

local api = vim.api

local M = {}

local FLOAT_COLUMNS, FLOAT_ROWS = 100, 30
local BESIDE = 40 -- columns left to the window beside a split
local MIN_COLUMNS, MIN_ROWS = 38, 8 -- smallest window that a chat takes; 80 columns hold two of them

---@param size number|fun(): number
---@param whole integer
---@return integer
local function cells(size, whole)
  if type(size) == "function" then
    size = size()
  end
  size = size <= 1 and size * whole or size
  return math.max(1, math.floor(size))
end

---@param size number|fun(): number
---@return boolean
local function is_share(size)
  return type(size) == "number" and size <= 1
end

---Return the size of a float: a share of the editor with a minimum, limited to the size of the editor.
---@param size number|fun(): number
---@param whole integer
---@param least integer Minimum number of cells for a share
---@return integer
local function float_cells(size, whole, least)
  local wanted = cells(size, whole)
  if is_share(size) then
    wanted = math.max(wanted, least)
  end
  return math.min(wanted, whole - 2)
end

---@param config table The options `display.chat.window`
---@return table
function M.float(config)
  local columns, rows = vim.o.columns, vim.o.lines - vim.o.cmdheight - 1
  local width = math.max(10, float_cells(config.width, columns, FLOAT_COLUMNS))
  local height = math.max(3, float_cells(config.height, rows, FLOAT_ROWS))
  local covers = width * height > columns * rows / 2 -- roughly as `covering` decides
  return {
    relative = config.relative,
    width = width,
    height = height,
    row = math.max(0, math.floor((rows - height - 2) / 2)),
    col = math.max(0, math.floor((columns - width - 2) / 2)),
    border = config.border,
    title = " CodeCompanion ",
    footer = covers and " <C-w>w hides " or nil,
    footer_pos = covers and "right" or nil,
  }
end

---Return the minimum width of a vertical split, or 0 if the user has configured a width.
---@param config table
---@return integer
local function min_width(config)
  return is_share(config.width) and config.min_width or 0
end

---Return whether this many vertical splits have their minimum width and leave enough space beside them.
---@param config table
---@param splits integer
---@return boolean
function M.has_room_for(config, splits)
  return vim.o.columns >= min_width(config) * splits + BESIDE
end

---Return whether a chat may take a window: it is large enough and not fixed to its buffer.
---@param win integer
---@return boolean
local function is_free(win)
  local is_large = api.nvim_win_get_width(win) >= math.min(MIN_COLUMNS, vim.o.columns)
  return is_large and not vim.wo[win].winfixbuf
end

---Return the window for a chat without a split of its own: that of another chat or file, so that the current file
---remains visible, else the current one.
---@return integer? win nil if none is large enough
local function window_to_take()
  local here = api.nvim_get_current_win()
  local min_rows = math.min(MIN_ROWS, api.nvim_win_get_height(here))
  local function shows_chat(win)
    return vim.bo[api.nvim_win_get_buf(win)].filetype == "codecompanion"
  end
  local others = vim.tbl_filter(function(win)
    local is_file = vim.bo[api.nvim_win_get_buf(win)].buftype == ""
    local is_plain = api.nvim_win_get_config(win).relative == "" and not vim.wo[win].diff
    local is_high = api.nvim_win_get_height(win) >= min_rows
    return win ~= here and (is_file or shows_chat(win)) and is_plain and is_high and is_free(win)
  end, api.nvim_tabpage_list_wins(0))
  local previous = vim.fn.win_getid(vim.fn.winnr("#"))
  table.sort(others, function(a, b)
    local first, second = shows_chat(a), shows_chat(b)
    if first ~= second then
      return first
    end
    return a ~= b and (a == previous or b ~= previous and api.nvim_win_get_width(a) > api.nvim_win_get_width(b))
  end)
  if vim.bo.buftype == "" and others[1] then
    return others[1]
  end
  return (shows_chat(here) or is_free(here)) and here or nil
end

---Return the layout to use: a split that would be too narrow is replaced.
---@param config table
---@return string layout
---@return integer? win The window for `buffer`, by default the current one
function M.with_room(config)
  local least, name = min_width(config), config.layout
  if name == "vertical" and cells(config.width, vim.o.columns) < least and vim.o.columns < least + BESIDE then
    name = config.narrow_layout
    if name == "buffer" then
      local win = window_to_take()
      return win and "buffer" or "float", win
    end
  end
  return name == "buffer" and vim.wo.winfixbuf and "float" or name
end

---@param config table
---@return table
function M.split(config)
  if config.layout == "horizontal" then
    local side = config.position == "top" and "above"
      or config.position == "bottom" and "below"
      or (vim.o.splitbelow and "below" or "above")
    return { split = side, win = -1, height = cells(config.height, vim.o.lines) }
  end
  local side = config.position == "left" and "left"
    or config.position == "right" and "right"
    or (vim.o.splitright and "right" or "left")
  local width = math.max(cells(config.width, vim.o.columns), min_width(config))
  return { split = side, win = config.full_height and -1 or 0, width = width }
end

---Return the width of a split after the editor was resized, or nil if it is unchanged: a split that became too narrow
---gets its minimum width again; one that leaves too little space beside it shrinks, down to its share of the editor.
---@param config table
---@param width integer Current width
---@return integer?
function M.resized(config, width)
  local columns, least = vim.o.columns, min_width(config)
  local has_room = columns >= least + BESIDE
  if has_room and width < least then
    return least
  end
  local most = math.max(cells(config.width, columns), columns - BESIDE, has_room and least or 0)
  return (width > most or not has_room and width < most) and most or nil
end

return M

---Highlights Markdown in a chat buffer piece by piece, only where it is visible.
---
---A treesitter highlighter on the whole buffer would reparse it with every chunk and freeze a long chat (lessons 46,
---50). Instead, finished pieces are parsed once, as strings, when a window shows them; streaming text is highlighted
---line by line. Queries and groups are Neovim's own, so the result matches other buffers.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local live = require("codecompanion.chat.buffer.colour_live_text")
local registry = require("codecompanion.chat.state.open_chats")
local scan = require("codecompanion.chat.buffer.markdown_pieces")

local M = {}

M.pieces = api.nvim_create_namespace("codecompanion.chat.pieces")
M.ns = api.nvim_create_namespace("codecompanion.chat.paint")
local provider = api.nvim_create_namespace("codecompanion.chat.provider")

local BUDGET_MS = 4
local MAX_LINES = 2000 -- a whole-buffer highlighter of a longer chat would freeze streaming
local INPUT_AFTER_MS = 60
local MAX_INPUT_LINES = 300
local MAX_PIECE_BYTES = 60000
local LONG_LINE_BYTES = 2000

---Register rows [first, first + lines) as a piece of Markdown (or code in `lang`) to highlight when visible.
---@param chat CodeCompanion.Chat
---@param first integer
---@param piece { lines: integer, lang?: string, fence?: boolean }
function M.add(chat, first, piece)
  local id = api.nvim_buf_set_extmark(chat.bufnr, M.pieces, first, 0, {
    end_row = first + piece.lines,
    end_col = 0,
    strict = false,
    right_gravity = false,
    end_right_gravity = false,
  })
  chat.pieces[id] = { lang = piece.lang, fence = piece.fence }
  chat.unpainted = chat.unpainted + 1
end

---Register a complete string.
---@param chat CodeCompanion.Chat
---@param first integer
---@param lines string[]
function M.add_text(chat, first, lines)
  for _, piece in ipairs(scan.split(lines)) do
    M.add(chat, first, piece)
    first = first + piece.lines
  end
end

---@param bufnr integer
---@param row integer
---@param col integer
---@param opts table
local function mark(bufnr, row, col, opts)
  opts.strict = false
  api.nvim_buf_set_extmark(bufnr, M.ns, row, col, opts)
end

---Parsed queries, cached here because Neovim's own cache is weak and reparsing a query costs up to 20 ms.
---@type table<string, { highlights?: vim.treesitter.Query, injections?: vim.treesitter.Query }>
local queries = {}

---@param lang string
---@return vim.treesitter.Query? highlights
local function highlight_query(lang)
  if not queries[lang] then
    queries[lang] = {
      highlights = vim.treesitter.query.get(lang, "highlights"),
      injections = vim.treesitter.query.get(lang, "injections"),
    }
  end
  return queries[lang].highlights
end

---@param name string Info string of a fence
---@return string? lang An installed treesitter language
local function language(name)
  local lang = vim.treesitter.language.get_lang(name:lower()) or name:lower()
  local ok, found = pcall(vim.treesitter.language.add, lang)
  if ok and found ~= false and #api.nvim_get_runtime_file("parser/" .. lang .. ".*", false) > 0 then
    return lang
  end
end

---Apply the captures of the highlight queries as extmarks.
---@param bufnr integer
---@param first integer
---@param text string
---@param lang string
local function highlight(bufnr, first, text, lang)
  local parser = vim.treesitter.get_string_parser(text, lang)
  parser:parse(true)
  parser:for_each_tree(function(tree, child)
    local query = highlight_query(child:lang())
    if not query then
      return
    end
    for id, node, metadata in query:iter_captures(tree:root(), text) do
      local name = query.captures[id]
      if name:sub(1, 1) ~= "_" and name ~= "spell" and name ~= "nospell" then
        local own = metadata[id] or {}
        local range = vim.treesitter.get_range(node, text, own)
        mark(bufnr, first + range[1], range[2], {
          end_row = first + range[4],
          end_col = range[5],
          hl_group = "@" .. name .. "." .. child:lang(),
          priority = tonumber(own.priority or metadata.priority) or 100,
          conceal = own.conceal or metadata.conceal,
        })
      end
    end
  end)
end

---@param bufnr integer
---@param first integer
---@param last integer Exclusive
local function as_code(bufnr, first, last)
  local group = "@markup.raw.block.markdown"
  mark(bufnr, first, 0, { end_row = last, end_col = 0, hl_group = group, priority = 90 })
end

---Highlight a diff, even without an installed parser.
---@param bufnr integer
---@param first integer
---@param lines string[]
local function diff_lines(bufnr, first, lines)
  for index, line in ipairs(lines) do
    local group = line:find("^%+") and "Added" or line:find("^%-") and "Removed" or line:find("^@@") and "Changed"
    if group then
      mark(bufnr, first + index - 1, 0, { end_col = #line, hl_group = group, priority = 105 })
    end
  end
end

---@param bufnr integer
---@param first integer
---@param last integer Exclusive
---@param piece { lang?: string, fence?: boolean }
local function paint(bufnr, first, last, piece)
  api.nvim_buf_clear_namespace(bufnr, live.ns, first, last)
  api.nvim_buf_clear_namespace(bufnr, M.ns, first, last)
  local lines = api.nvim_buf_get_lines(bufnr, first, last, false)
  local text = table.concat(lines, "\n") .. "\n"
  if piece.lang == "diff" or lines[1]:find("^```+diff") then
    diff_lines(bufnr, first, lines)
  end
  if piece.fence then
    as_code(bufnr, first, last)
  elseif #text <= MAX_PIECE_BYTES then
    local lang = piece.lang and language(piece.lang) or not piece.lang and "markdown" or nil
    if piece.lang then
      as_code(bufnr, first, last)
    end
    if lang then
      -- a user's query that does not match its parser disables highlighting, not the chat
      pcall(highlight, bufnr, first, text, lang)
    end
  end
end

---Return the unhighlighted pieces in these rows.
---@param chat CodeCompanion.Chat
---@param top integer
---@param bottom integer
---@return table[] marks
local function unpainted(chat, top, bottom)
  local found = {}
  local marks = api.nvim_buf_get_extmarks(
    chat.bufnr,
    M.pieces,
    { top, 0 },
    { bottom, -1 },
    { overlap = true, details = true }
  )
  for _, item in ipairs(marks) do
    local piece = chat.pieces[item[1]]
    if piece and not piece.done then
      found[#found + 1] = { id = item[1], first = item[2], last = item[4].end_row, piece = piece }
    end
  end
  return found
end

---Split a very long line into parts that are highlighted one by one, because the whole line would take tens of
---milliseconds.
---@param chat CodeCompanion.Chat
---@param item table
---@return boolean divided
local function divide(chat, item)
  local count = item.last - item.first
  if count < 2 or item.piece.lang or item.piece.fence then
    return false
  end
  local bytes = api.nvim_buf_get_offset(chat.bufnr, item.last) - api.nvim_buf_get_offset(chat.bufnr, item.first)
  if bytes < count * LONG_LINE_BYTES then
    return false
  end
  for row = item.first, item.last - 1 do
    M.add(chat, row, { lines = 1 })
  end
  return true
end

---Highlight visible pieces for a few milliseconds, then yield and continue.
---@param chat CodeCompanion.Chat
local function work(chat)
  chat.painting = false
  if not api.nvim_buf_is_loaded(chat.bufnr) then
    return
  end
  local start = vim.uv.hrtime()
  for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
    local top, bottom = vim.fn.line("w0", win) - 1, vim.fn.line("w$", win)
    for _, item in ipairs(unpainted(chat, top, bottom)) do
      if (vim.uv.hrtime() - start) / 1e6 > BUDGET_MS then
        return M.wake(chat)
      end
      item.piece.done = true
      chat.unpainted = chat.unpainted - 1
      if divide(chat, item) then
        M.wake(chat)
      elseif item.last > item.first then
        paint(chat.bufnr, item.first, item.last, item.piece)
      end
    end
  end
end

---Schedule highlighting of visible pieces.
---@param chat CodeCompanion.Chat
function M.wake(chat)
  if not chat.painting then
    chat.painting = true
    vim.defer_fn(function()
      work(chat)
    end, 2)
  end
end

---Schedule highlighting of the draft; it is short, so it is always highlighted completely.
---@param chat CodeCompanion.Chat
function M.input_soon(chat)
  if chat.input_painting then
    return
  end
  chat.input_painting = true
  vim.defer_fn(function()
    chat.input_painting = false
    if not api.nvim_buf_is_loaded(chat.bufnr) then
      return
    end
    local first = anchors.position(chat, "input")
    local lines = api.nvim_buf_get_lines(chat.bufnr, first, -1, false)
    api.nvim_buf_clear_namespace(chat.bufnr, M.ns, first, -1)
    if #lines <= MAX_INPUT_LINES then
      for _, piece in ipairs(scan.split(lines)) do
        paint(chat.bufnr, first, first + piece.lines, piece)
        first = first + piece.lines
      end
    end
  end, INPUT_AFTER_MS)
end

---Detach a whole-buffer highlighter that the user's autocmds may have attached to a long chat.
---@param chat CodeCompanion.Chat
function M.guard(chat)
  local highlighter = package.loaded["vim.treesitter.highlighter"] -- not loaded: no buffer has one
  if highlighter and highlighter.active[chat.bufnr] and api.nvim_buf_line_count(chat.bufnr) > MAX_LINES then
    vim.treesitter.stop(chat.bufnr)
  end
end

---Load the queries when idle: otherwise the first highlighted line would take tens of milliseconds.
function M.warm()
  for index, lang in ipairs({ "markdown", "markdown_inline" }) do
    vim.defer_fn(function()
      if pcall(vim.treesitter.language.add, lang) then
        highlight_query(lang)
      end
    end, 60 * index)
  end
end

---Watch the visible rows of windows.
function M.setup()
  api.nvim_set_decoration_provider(provider, {
    on_win = function(_, _, bufnr, top, bottom)
      local chat = registry.by_buffer(bufnr)
      if chat and chat.unpainted > 0 and not chat.painting and #unpainted(chat, top, bottom) > 0 then
        M.wake(chat)
      end
      return false
    end,
  })
end

return M

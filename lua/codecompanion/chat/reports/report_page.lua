---Displays a report in its buffer and window: updated line by line, with folded sections.

local api = vim.api
local numbers = require("codecompanion.text.numbers")
local shown = require("codecompanion.chat.buffer.shown")

local M = {}

---Return the fold level for `foldexpr`: sections, and long parts inside them. The empty line before a heading stays
---outside.
---@return string
function M.fold_level()
  local line = vim.fn.getline(vim.v.lnum)
  local depth = line:match("^##(#?) ")
  if depth then
    return ">" .. 1 + #depth
  end
  local below = line == "" and vim.fn.getline(vim.v.lnum + 1):match("^##(#?) ")
  return below and tostring(#below) or "="
end

---Return the line of a closed fold, for `foldtext`.
---@return { [1]: string, [2]: string }[]
function M.fold_text()
  local title, lines = vim.fn.getline(vim.v.foldstart):gsub("^#+%s*", ""), vim.v.foldend - vim.v.foldstart
  return {
    { "▸ ", "CodeCompanionFoldMark" },
    { title, "CodeCompanionFold" },
    { "  " .. numbers.counted(lines, "line"), "CodeCompanionFoldMark" },
  }
end

---@param lines string[]
---@return string
local function joined(lines)
  return table.concat(lines, "\n") .. "\n"
end

local chart_ns = vim.api.nvim_create_namespace("codecompanion.report.chart")
local CHART_GROUPS = {
  sent = "CodeCompanionChartSent",
  without = "CodeCompanionChartWithout",
  limit = "CodeCompanionChartLimit",
  edit = "CodeCompanionCleared",
  compaction = "CodeCompanionCompacted",
}
local OVER_TREESITTER = 200

---Colour the characters of a chart, which is readable without colours.
---@param bufnr integer
---@param spans any[][] (0-based line, first byte, end, ink) of each range
local function colour(bufnr, spans)
  api.nvim_buf_clear_namespace(bufnr, chart_ns, 0, -1)
  for _, span in ipairs(spans) do
    local line, first, end_col, ink = unpack(span)
    local opts = { end_col = end_col, hl_group = CHART_GROUPS[ink], priority = OVER_TREESITTER }
    api.nvim_buf_set_extmark(bufnr, chart_ns, line, first, opts)
  end
end

---Replace the text of the buffer; cursor and folds are kept.
---@param bufnr integer
---@param text string
---@param spans? any[][] Coloured ranges
function M.draw(bufnr, text, spans)
  local lines = vim.split(text, "\n", { plain = true })
  local before = joined(api.nvim_buf_get_lines(bufnr, 0, -1, false))
  local hunks = vim.diff(before, joined(lines), { result_type = "indices" }) --[[@as integer[][] ]]
  vim.bo[bufnr].modifiable = true
  for index = #hunks, 1, -1 do
    local from, gone, to, fresh = unpack(hunks[index])
    local first = gone == 0 and from or from - 1 -- nothing is deleted: the new lines come after line `from`
    api.nvim_buf_set_lines(bufnr, first, first + gone, false, vim.list_slice(lines, to, to + fresh - 1))
  end
  vim.bo[bufnr].modifiable = false
  vim.bo[bufnr].modified = false
  colour(bufnr, spans or {})
end

---@param win integer
---@param statusline string Used if the user has none
function M.dress(win, statusline)
  local is_plain = shown.is_plain_statusline()
  local values = {
    statusline = is_plain and statusline or "", -- the user's own status line is kept
    foldmethod = "expr",
    foldexpr = "v:lua.require'codecompanion.chat.reports.report_page'.fold_level()",
    foldtext = "v:lua.require'codecompanion.chat.reports.report_page'.fold_text()",
    foldlevel = 1,
    foldenable = true,
    foldcolumn = "0",
    number = false,
    relativenumber = false,
    signcolumn = "no",
    list = false,
    spell = false,
    wrap = true,
    linebreak = true,
    breakindent = true,
    breakindentopt = "list:-1",
    conceallevel = 0,
    winfixheight = true,
  }
  for name, value in pairs(values) do
    api.nvim_set_option_value(name, value, { scope = "local", win = win })
  end
  api.nvim_win_call(win, function()
    vim.opt_local.fillchars:append({ fold = " " })
  end)
end

return M

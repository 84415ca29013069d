---Detects when proposals must be redrawn: their lines, the width of a window or the theme changed.

local api = vim.api
local region = require("codecompanion.changes.region")

local M = {}

---Return whether changed lines may affect the drawing; a change outside all edits only moves their marks.
---@param edits CodeCompanion.StandingEdit[]
---@param first integer 0-based row of the first changed line
---@param last integer Row after the last changed line, before the change
---@return boolean
local function is_near(edits, first, last)
  for _, edit in ipairs(edits) do
    local from, to = region.rows(edit.region)
    if not from or first <= to + 1 and last >= from - 1 then
      return true
    end
  end
  return false
end

---Watch the text of a buffer as long as it has edits.
---@param bufnr integer
---@param on { edits: (fun(): CodeCompanion.StandingEdit[]?), changed: fun(), gone: fun() } gone: the text was replaced
function M.lines(bufnr, on)
  api.nvim_buf_attach(bufnr, false, {
    on_lines = function(_, _, _, first, last)
      local edits = on.edits()
      if not edits then
        return true
      elseif is_near(edits, first, last) then
        on.changed()
      end
    end,
    on_reload = on.gone,
    on_detach = on.gone,
  })
end

local is_watching = false

---Call a function when the width of windows or of their side columns changes.
---@param changed fun() Only the function of the first call is used
function M.widths(changed)
  if is_watching then
    return
  end
  is_watching = true
  api.nvim_create_autocmd({ "VimResized", "WinResized", "OptionSet" }, {
    group = api.nvim_create_augroup("codecompanion.changes", {}),
    desc = "Draw proposals for the new width",
    callback = function(args)
      if args.event ~= "OptionSet" or vim.list_contains({ "wrap", "number", "tabstop" }, args.match) then
        changed()
      end
    end,
  })
  api.nvim_create_autocmd("ColorScheme", {
    group = "codecompanion.changes",
    desc = "Define the colours of proposals",
    callback = function()
      require("codecompanion.changes.change_highlights").define()
    end,
  })
end

return M

---Highlights text that is still streaming, line by line; treesitter highlights finished pieces (`markdown_colours`).

local api = vim.api

local M = {}

M.ns = api.nvim_create_namespace("codecompanion.chat.live")

---Highlight a line that is incomplete or belongs to an incomplete piece.
---@param chat CodeCompanion.Chat
---@param row integer
---@param line string
---@param kind CodeCompanion.LineKind
function M.line(chat, row, line, kind)
  local function put(from, to, group)
    api.nvim_buf_set_extmark(chat.bufnr, M.ns, row, from, { end_col = to, hl_group = group, priority = 95 })
  end
  if kind == "heading" then
    put(0, #line, ("@markup.heading.%d.markdown"):format(math.min(6, #line:match("^#+"))))
  elseif kind == "fence" or kind == "code" then
    put(0, #line, "@markup.raw.block.markdown")
  elseif kind == "text" and #line < 2000 then
    for from, to in line:gmatch("()`[^`]+`()") do
      put(from - 1, to - 1, "@markup.raw.markdown_inline")
    end
    for from, to in line:gmatch("()%*%*[^*]+%*%*()") do
      put(from - 1, to - 1, "@markup.strong.markdown_inline")
    end
    local from, to = line:match("^%s*()[-*+]()%s")
    if from then
      put(from - 1, to - 1, "@markup.list.markdown")
    end
  end
end

return M

---Defines the editor context items for buffer text: one buffer, all buffers, the selection, the visible lines.

local api = vim.api
local lines = require("codecompanion.editor_context.buffer_lines")
local named = require("codecompanion.files.named_buffers")
local place = require("codecompanion.editor_context.working_window")

---@param at CodeCompanion.EditorContext.At
---@return integer? bufnr
---@return string? problem Set if the named buffer does not exist
local function wanted(at)
  if at.argument == "" then
    return at.bufnr
  end
  return named.find(at.argument, place.buffers())
end

---@param lead string
---@return string[]
local function complete(lead)
  return named.containing(lead, place.buffers())
end

---@type CodeCompanion.EditorContext.Item[]
return {
  {
    name = "buffer",
    description = "The current file with its unsaved changes, or another open one by name",
    argument = "name",
    complete = complete,
    callback = function(at)
      local bufnr, problem = wanted(at)
      if not bufnr then
        return { error = problem, nothing = "no file is open" }
      end
      local text, why = lines.text(bufnr)
      return text or { error = why, nothing = ("%s is empty"):format(named.name(bufnr)) }
    end,
  },
  {
    name = "buffers",
    description = "All open files, the most recent first",
    async = true,
    anywhere = true,
    callback = function(_, done)
      require("codecompanion.editor_context.texts_of_buffers").give(done)
    end,
  },
  {
    name = "selection",
    description = "The last selection in the current file",
    callback = function(at)
      if not at.bufnr then
        return { nothing = "no file is open" }
      end
      local first, last = api.nvim_buf_get_mark(at.bufnr, "<"), api.nvim_buf_get_mark(at.bufnr, ">")
      if first[1] == 0 or last[1] == 0 or last[1] > api.nvim_buf_line_count(at.bufnr) then
        return { nothing = ("nothing was selected in %s"):format(named.name(at.bufnr)) }
      end
      local text, why = lines.text(at.bufnr, first[1], last[1])
      if not text then
        return { error = why, nothing = "only empty lines are selected" }
      end
      local selected = text.text
      local region = api.nvim_buf_call(at.bufnr, function()
        return vim.fn.getregion(vim.fn.getpos("'<"), vim.fn.getpos("'>"), { type = vim.fn.visualmode() })
      end)
      text.text = lines.join(region)
      text.partial = text.text ~= selected
      text.title = "selected in" .. (text.title and " " .. text.title or "")
      return text
    end,
  },
  {
    name = "viewport",
    description = "The lines of files visible on the screen",
    anywhere = true,
    callback = function()
      local texts = {}
      for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
        local bufnr = api.nvim_win_get_buf(win)
        if place.is_text(bufnr) then
          local visible = place.visible(win)
          local text = lines.text(bufnr, visible[1], visible[2])
          if text then
            text.title = "on the screen of" .. (text.title and " " .. text.title or "")
            texts[#texts + 1] = text
          end
        end
      end
      return #texts > 0 and texts or { nothing = "no file is on the screen" }
    end,
  },
}

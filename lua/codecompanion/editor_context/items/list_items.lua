---Defines the editor context items for diagnostics, the quickfix list, terminal output and messages.

local api = vim.api
local lines = require("codecompanion.editor_context.buffer_lines")
local place = require("codecompanion.editor_context.working_window")
local terminals = require("codecompanion.editor_context.terminals")

local MAX_DIAGNOSTICS, MAX_QUICKFIX = 500, 1000
local TERMINAL_LINES, MESSAGE_LINES = 400, 200
local SEVERITIES = { "error", "warning", "information", "hint" }

---@param text string
---@return string
local function one_line(text)
  return vim.trim((text:gsub("%s+", " ")))
end

---@param found vim.Diagnostic[]
---@param with_path boolean
---@return string[]
local function told(found, with_path)
  table.sort(found, function(a, b)
    local left, right = api.nvim_buf_get_name(a.bufnr), api.nvim_buf_get_name(b.bufnr)
    if left ~= right then
      return left < right
    elseif a.lnum ~= b.lnum then
      return a.lnum < b.lnum
    end
    return (a.severity or 1) < (b.severity or 1)
  end)
  local list = {}
  for index, one in ipairs(found) do
    if index > MAX_DIAGNOSTICS then
      list[#list + 1] = ("… %d more"):format(#found - MAX_DIAGNOSTICS)
      break
    end
    local where = ("%d:%d"):format(one.lnum + 1, one.col + 1)
    where = with_path and place.short(api.nvim_buf_get_name(one.bufnr)) .. ":" .. where or where
    local about = one_line(table.concat({ one.source or "", one.code and tostring(one.code) or "" }, " "))
    local severity = SEVERITIES[one.severity] or SEVERITIES[1]
    about = about ~= "" and (" [%s]"):format(about) or ""
    list[#list + 1] = ("%s: %s: %s%s"):format(where, severity, one_line(one.message), about)
    local code = api.nvim_buf_is_loaded(one.bufnr)
        and api.nvim_buf_get_lines(one.bufnr, one.lnum, one.lnum + 1, false)[1]
      or ""
    if code:find("%S") then
      list[#list + 1] = "    " .. vim.trim(code):sub(1, 200)
    end
  end
  return list
end

---@param all vim.Diagnostic[]
---@return vim.Diagnostic[]
local function of_files(all)
  return vim.tbl_filter(function(one)
    return api.nvim_buf_is_valid(one.bufnr) and place.is_file(one.bufnr)
  end, all)
end

---@type CodeCompanion.EditorContext.Item[]
return {
  {
    name = "diagnostics",
    description = "Diagnostics of the current file; :workspace for all open files",
    argument = "workspace",
    complete = function()
      return { "workspace" }
    end,
    callback = function(at)
      if at.argument == "workspace" then
        local found = told(of_files(vim.diagnostic.get()), true)
        return #found > 0 and { text = lines.join(found), title = "diagnostics of all open files" }
          or { nothing = "there are no diagnostics" }
      elseif at.argument ~= "" then
        return { error = ("unknown argument %s; expected workspace, or nothing"):format(at.argument) }
      elseif not at.bufnr then
        return { nothing = "no file is open" }
      end
      local found, name = told(vim.diagnostic.get(at.bufnr), false), lines.name(at.bufnr)
      if #found == 0 then
        return { nothing = ("there are no diagnostics in %s"):format(name) }
      end
      return {
        text = lines.join(found),
        title = at.path ~= "" and "diagnostics of" or "diagnostics of " .. name,
        path = at.path,
        unsaved = vim.bo[at.bufnr].modified,
      }
    end,
  },
  {
    name = "quickfix",
    description = "The quickfix list",
    callback = function()
      local list, found = vim.fn.getqflist({ items = 0, title = 0 }), {}
      for index, item in ipairs(list.items) do
        if index > MAX_QUICKFIX then
          found[#found + 1] = ("… %d more"):format(#list.items - MAX_QUICKFIX)
          break
        end
        local path = item.bufnr > 0 and api.nvim_buf_is_valid(item.bufnr) and api.nvim_buf_get_name(item.bufnr) or ""
        local where = path ~= "" and ("%s:%d:%d: "):format(place.short(path), item.lnum, item.col) or ""
        found[#found + 1] = where .. one_line(item.text)
      end
      if #found == 0 then
        return { nothing = "the quickfix list is empty" }
      end
      local title = list.title ~= "" and (" (%s)"):format(one_line(list.title)) or ""
      return { text = lines.join(found), title = "the quickfix list" .. title }
    end,
  },
  {
    name = "terminal",
    description = "The end of the last used terminal's output",
    argument = "name",
    complete = function()
      return vim.tbl_map(terminals.program, terminals.list())
    end,
    keep = "tail",
    callback = function(at)
      local found = terminals.list()
      if at.argument ~= "" then
        found = vim.tbl_filter(function(bufnr)
          return terminals.program(bufnr) == at.argument or tostring(bufnr) == at.argument
        end, found)
        if #found == 0 then
          return { error = ("no terminal runs %s"):format(at.argument) }
        end
      end
      if #found == 0 then
        return { nothing = "no terminal is open" }
      end
      local shown = terminals.last_lines(found[1], TERMINAL_LINES)
      if #shown == 0 then
        return { nothing = "the terminal has no output" }
      end
      return { text = lines.join(shown), title = ("the end of the terminal (%s)"):format(terminals.program(found[1])) }
    end,
  },
  {
    name = "messages",
    description = "The end of :messages",
    keep = "tail",
    callback = function()
      local all = vim.split(vim.trim(vim.fn.execute("messages")), "\n", { plain = true })
      if not table.concat(all):find("%S") then
        return { nothing = "there are no messages" }
      end
      local shown = vim.list_slice(all, math.max(1, #all - MESSAGE_LINES + 1))
      return { text = lines.join(shown), title = "the end of Neovim's :messages" }
    end,
  },
}

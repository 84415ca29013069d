---`:CodeCompanion index`: builds or rebuilds the code index of the current folder, or reports its state.

local host = require("codecompanion.host")
local numbers = require("codecompanion.text.numbers")
local progress = require("codecompanion.host.index_progress")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

---@param bytes integer
---@return string
local function size(bytes)
  return bytes < 1e6 and ("%d kB"):format(math.ceil(bytes / 1000)) or ("%.1f MB"):format(bytes / 1e6)
end

---@param found table Result of `index_project`
---@return string
function M.sentence(found)
  if found.phase == "unusable" or found.files == 0 then
    return progress.sentence(found)
  end
  local what = ("%s, %s, %s"):format(
    numbers.counted(found.files, "file"),
    numbers.counted(found.symbols, "definition"),
    size(found.bytes)
  )
  if found.vectors > 0 then
    what = ("%s, %s"):format(what, numbers.counted(found.vectors, "vector"))
  end
  local head = found.phase == "building" and progress.sentence(found)
    or found.complete and ("The code of %s is indexed"):format(vim.fn.fnamemodify(found.root, ":t"))
    or ("The code of %s is partly indexed"):format(vim.fn.fnamemodify(found.root, ":t"))
  return ("%s (%s)"):format(head, what)
end

---Return the state of the current folder's index, for `:checkhealth`.
---@param wait_ms integer
---@return string? sentence nil if the host does not respond
---@return boolean? is_usable
function M.examine(wait_ms)
  local sentence, is_usable
  host.request("index_project", { cwd = vim.fn.getcwd() }, function(_, found)
    if found then
      sentence, is_usable = M.sentence(found), found.phase ~= "unusable"
    end
  end)
  vim.wait(wait_ms, function()
    return sentence ~= nil
  end, 20)
  return sentence, is_usable
end

---@param arguments string[] `--rebuild`, `status` or none
function M.run(arguments)
  local what = arguments[1]
  if what ~= nil and what ~= "--rebuild" and what ~= "status" then
    return say.line("Usage: :CodeCompanion index [--rebuild|status]", severity.ERROR)
  end
  local payload = { cwd = vim.fn.getcwd(), start = what == nil, rebuild = what == "--rebuild" }
  host.ask("index_project", payload, function(found)
    local sentence = M.sentence(found)
    local level = found.phase == "unusable" and severity.WARN or severity.INFO
    local rest = vim.tbl_filter(function(text)
      return text ~= ""
    end, { found.left_out, found.no_vectors })
    local whole = #rest > 0 and ("%s. %s"):format(sentence, table.concat(rest, " ")) or sentence
    local is_long = vim.fn.strdisplaywidth(whole) > vim.v.echospace
    if what == "status" and is_long and vim.api.nvim_get_mode().mode == "n" then
      local float = require("codecompanion.screen.float")
      return float.open({ title = "Code index", lines = { sentence .. ".", unpack(rest) }, footer = "q close" })
    end
    say.line({ whole, sentence }, level)
  end)
end

return M

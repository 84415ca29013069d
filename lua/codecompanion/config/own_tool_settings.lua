---Checks the options of user-defined tools (`interactions.chat.tools.<name>`), and returns their settings for the host.
---The functions stay in the editor, where `codecompanion.host.run_own_tools` runs them.

local plain = require("codecompanion.values.plain")

local M = {}

---@param value function|table
---@return string? problem
---@return any normalised
function M.check_callback(value)
  if type(value) == "function" then
    return nil, value
  end
  local cmds = value.cmds
  if type(cmds) ~= "table" or #cmds == 0 then
    return "expected a function, or a table with `cmds`"
  end
  for number, cmd in ipairs(cmds) do
    if type(cmd) ~= "function" then
      local text = "`cmds[%d]` is a %s; expected a function (call vim.system in it to run a command)"
      return text:format(number, type(cmd))
    end
  end
  if value.schema ~= nil and type(value.schema) ~= "table" then
    return "`schema` is not a table"
  end
  return nil, value
end

---@param value string
---@return string? problem
---@return any normalised
function M.check_python(value)
  local where, name = value:match("^(.+):([%a_][%w_]*)$")
  if not where then
    return 'expected "module.path:function" or "path/to/file.py:function"'
  end
  if not where:find("[/\\]") and not vim.endswith(where, ".py") then
    if not (where .. "."):find("^[%a_][%w_.]*$") or where:find("..", 1, true) then
      return ("%q is not a module name; write a file as path/to/file.py:function"):format(where)
    end
    return nil, value
  end
  where = vim.fs.normalize(where)
  if not where:find("^/") and not where:find("^%a:/") then
    where = vim.fs.normalize(vim.fn.stdpath("config") .. "/" .. where)
  end
  return nil, ("%s:%s"):format(where, name)
end

---Return the argument schema and the description from any of the accepted forms.
---@param schema? table
---@return table? parameters
---@return string? description
local function parts_of(schema)
  if schema == nil then
    return nil
  end
  local inner = type(schema["function"]) == "table" and schema["function"] or schema
  if type(inner.parameters) == "table" and inner.properties == nil then
    return inner.parameters, type(inner.description) == "string" and inner.description or nil
  end
  return inner.type == "function" and {} or inner, nil
end

---Return the settings of one tool for the host, or nil and the problem if they are invalid.
---@param name string
---@param tool table The checked options
---@param evaluate fun(path: string, value: any): boolean?
---@return table? told
---@return string? problem
function M.told(name, tool, evaluate)
  local path = "interactions.chat.tools." .. name
  if not tool.callback and not tool.python then
    return nil, path .. ": `callback` or `python` is missing; there is no built-in with this name"
  elseif tool.callback and tool.python then
    return nil, path .. ": has both `callback` and `python`; set only one"
  end
  local given = tool.schema or (type(tool.callback) == "table" and tool.callback.schema) or nil
  local problem = given and plain.problem(given, path .. ".schema")
  if problem then
    return nil, problem
  end
  local parameters, described = parts_of(given)
  local opts = tool.opts
  return {
    python = tool.python or "",
    description = tool.description or described or "",
    parameters = parameters and (next(parameters) == nil and vim.empty_dict() or parameters) or vim.NIL,
    settings = {
      enabled = evaluate(path .. ".enabled", tool.enabled) == true,
      require_approval_before = opts.require_approval_before,
      allowed_in_yolo_mode = opts.allowed_in_yolo_mode,
      timeout_s = opts.timeout / 1000,
    },
  }
end

return M

---The option `sandbox`: where the model's commands run. A string sets its `mode`.

local MODES = { "auto", "required", "off" }
local KEYS = { mode = "string", write = "table", read = "table", network = "boolean" }

---@param value string|table
---@return string? problem
---@return table? normalised
local function check(value)
  local given = type(value) == "string" and { mode = value } or value
  for key, inner in pairs(given) do
    if not KEYS[key] then
      return ("unknown key %s; expected one of mode, write, read, network"):format(vim.inspect(key))
    elseif type(inner) ~= KEYS[key] then
      return ("%s: got %s; expected a %s"):format(key, vim.inspect(inner), KEYS[key] == "table" and "list" or KEYS[key])
    elseif KEYS[key] == "table" then
      for _, path in ipairs(inner) do
        if type(path) ~= "string" or path == "" then
          return ("%s: got %s; expected a path"):format(key, vim.inspect(path))
        end
      end
    end
  end
  local mode = given.mode or "auto"
  if not vim.list_contains(MODES, mode) then
    local of = type(value) == "table" and "mode: " or ""
    return ("%sgot %s; expected one of %s"):format(of, vim.inspect(mode), table.concat(MODES, ", "))
  end
  return nil, { mode = mode, write = given.write or {}, read = given.read or {}, network = given.network or false }
end

---@type CodeCompanion.Option
return {
  name = "sandbox",
  type = { "string", "table" },
  default = "auto",
  replace = true,
  check = check,
  description = "`auto` uses a sandbox if the system has one, `required` refuses commands without one, `off` uses none;"
    .. " for the table, see |codecompanion-sandbox|.",
}

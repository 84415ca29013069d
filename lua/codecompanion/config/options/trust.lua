---Options of workspace trust: `trust`.

---@param value string
---@return string? problem
---@return string? normalised
local function check_folder(value)
  if not (value:find("^[~/]") or value:find("^%a:[/\\]")) then
    return 'expected an absolute path or one from home: "~/src/mine", "~/src/mine/*", "~/src/mine/**"'
  end
  return nil, value
end

return {
  {
    name = "enabled",
    type = "boolean",
    default = true,
    description = "Ask for trust; false trusts every folder.",
  },
  {
    name = "folders",
    type = "list",
    items = { type = "string", check = check_folder },
    default = {},
    description = "Folders to trust: `~/src/mine`, `~/src/mine/*` (its subfolders), `~/src/mine/**` (at any depth).",
  },
}

---Options of workspace trust: `trust` (issue 20, section 2).

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
    description = "Do not load files that instruct the model or start programs until you trust the folder. `false`"
      .. " trusts every folder.",
  },
  {
    name = "folders",
    type = "list",
    items = { type = "string", check = check_folder },
    default = {},
    description = "Folders to trust from the start: `~/src/mine` matches that repository or folder alone,"
      .. " `~/src/mine/*` each one in it, `~/src/mine/**` it and everything below.",
  },
}

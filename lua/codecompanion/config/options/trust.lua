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
    description = "Load nothing of a folder that instructs the model or starts programs before you trust it. With"
      .. " false every folder is trusted.",
  },
  {
    name = "folders",
    type = "list",
    items = { type = "string", check = check_folder },
    default = {},
    description = "Folders that are trusted from the start: `~/src/mine` is that repository or folder alone,"
      .. " `~/src/mine/*` each one in it, `~/src/mine/**` it and everything below.",
  },
}

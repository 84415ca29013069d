---Options of rules: `rules.<group>` and `rules.opts` (R-549).

---Check the path of a rule file; whether the file exists depends on the folder of the chat.
---@param value string|{ path?: any, parser?: any }
---@return string? problem
---@return { path: string, parser?: string }? normalised
local function check_file(value)
  if type(value) == "string" then
    value = { path = value }
  end
  for key in pairs(value) do
    if key ~= "path" and key ~= "parser" then
      return ("unknown key %q; expected a path or { path = …, parser = … }"):format(tostring(key))
    end
  end
  if type(value.path) ~= "string" or value.path == "" then
    return "expected a path or { path = …, parser = … }"
  end
  if value.parser ~= nil and value.parser ~= "claude" and value.parser ~= "none" then
    return ('parser: got %s; expected "claude" or "none"'):format(vim.inspect(value.parser))
  end
  return nil, value
end

---@param group? { description: string, files: (string|table)[] }
---@return CodeCompanion.Option[]
local function group_fields(group)
  group = group or {}
  return {
    {
      name = "description",
      type = "string",
      default = group.description or "",
      description = "Text that `/rules` shows next to the name.",
    },
    {
      name = "files",
      type = "list",
      items = { type = { "string", "table" }, check = check_file },
      default = group.files or {},
      description = "Paths, globs or folders, relative to the working folder, or { path = …, parser = … }.",
    },
    {
      name = "parser",
      type = "string",
      enum = { "none", "claude" },
      default = "none",
      description = "`claude` includes `@path` files.",
    },
    {
      name = "enabled",
      type = { "boolean", "function" },
      default = true,
      signature = "fun(): boolean",
      description = "Offer the group. A function is called when the host starts.",
    },
  }
end

local fields = {
  {
    name = "default",
    description = "Rule files that are common in projects.",
    disable = true,
    fields = group_fields({
      description = "Rule files common in projects",
      files = {
        ".clinerules",
        ".cursorrules",
        ".goosehints",
        ".rules",
        ".windsurfrules",
        ".github/copilot-instructions.md",
        "AGENT.md",
        "AGENTS.md",
        { path = "CLAUDE.md", parser = "claude" },
        { path = "CLAUDE.local.md", parser = "claude" },
        { path = "~/.claude/CLAUDE.md", parser = "claude" },
      },
    }),
  },
  {
    name = "opts",
    description = "Options of all groups.",
    fields = {
      {
        name = "chat",
        description = "Rules in the chat.",
        fields = {
          {
            name = "enabled",
            type = { "boolean", "function" },
            default = true,
            signature = "fun(): boolean",
            description = "Attach rules to new chats. A function is called when the host starts.",
          },
          {
            name = "autoload",
            type = { "string", "list", "function" },
            items = { type = "string" },
            default = "default",
            signature = "fun(): string|string[]",
            description = "Group or groups to add to every new chat.",
          },
        },
      },
    },
  },
}

return {
  fields = fields,
  group = { name = "<group>", description = "Your own group.", disable = true, fields = group_fields() },
}

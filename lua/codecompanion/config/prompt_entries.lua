---Checks the entries of `prompt_library`. A problem is reported with its key, and the prompt is skipped.

local M = {}

local OPTS = {
  adapter = { "string", "table" },
  alias = "string",
  auto_submit = "boolean",
  enabled = "boolean",
  filetypes = "table",
  is_slash_cmd = "boolean",
  modes = "table",
  short_name = "string",
  stop_context_insertion = "boolean",
  user_prompt = { "string", "boolean" },
}
local FIELDS = {
  condition = "function",
  context = "table",
  description = "string",
  interaction = "string",
  name = "string",
  opts = "table",
  parameters = "table",
  prompts = "table",
  rules = { "string", "table" },
  strategy = "string",
}
---Keys of codecompanion.nvim that have no effect here, with the reason.
M.NOT_USED = {
  ["picker"] = "write a function and a mapping of your own",
  ["mcp_servers"] = "servers are configured, not chosen by a prompt",
  ["tools"] = "write @{group} in the text, or choose them with /tools",
  ["opts.ignore_system_prompt"] = "the system prompt is configured",
  ["opts.intro_message"] = "this kind of message is not supported",
  ["opts.is_workflow"] = "all its messages are sent as one",
  ["opts.pre_hook"] = "write a function and a mapping of your own",
  ["opts.placement"] = "the model chooses the place",
  ["opts.index"] = "prompts are sorted by name",
}

---@param given table
---@param known table<string, string|string[]>
---@param prefix string
---@return string? problem
local function check_keys(given, known, prefix)
  for key, value in pairs(given) do
    local name = prefix .. tostring(key)
    local types = known[key]
    if not types and not M.NOT_USED[name] then
      local near = require("codecompanion.values.nearest").word(tostring(key), vim.tbl_keys(known))
      return ("unknown key `%s`%s"):format(name, near and ("; did you mean %s%s?"):format(prefix, near) or "")
    end
    types = type(types) == "table" and types or { types }
    if types[1] and not vim.list_contains(types, type(value)) then
      return ("%s: got %s; expected %s"):format(name, type(value), table.concat(types, " or "))
    end
  end
end

---@param message any
---@return string? problem
local function check_message(message)
  if type(message) ~= "table" or (message.role ~= "user" and message.role ~= "system") then
    return 'each item of `prompts` must be { role = "user" or "system", content = … }'
  elseif type(message.content) ~= "string" and type(message.content) ~= "function" then
    return "`content` of a prompt must be a string or a function"
  end
end

---Check one entry, for the option in `config/options/prompts.lua`.
---@param entry any
---@return string? problem
---@return any normalised
function M.check(entry)
  if entry == false then
    return nil, false
  elseif type(entry) ~= "table" then
    return "expected a table, or false"
  end
  local problem = check_keys(entry, FIELDS, "") or check_keys(entry.opts or {}, OPTS, "opts.")
  if problem then
    return problem
  end
  local interaction = entry.interaction or entry.strategy or "chat"
  if not vim.list_contains({ "chat", "inline", "workflow" }, interaction) then
    return ('interaction: got %q; expected "chat" or "inline"'):format(interaction)
  end
  local alias = vim.tbl_get(entry, "opts", "alias") or vim.tbl_get(entry, "opts", "short_name")
  if alias and not alias:find("^%a[%w_-]*$") then
    return ("opts.alias: got %q; expected a letter, then letters, digits, - or _"):format(alias)
  end
  if not vim.islist(entry.prompts or {}) or #(entry.prompts or {}) == 0 then
    return "`prompts` is missing or empty"
  end
  for _, message in ipairs(entry.prompts) do
    -- Workflows of codecompanion.nvim contain lists of messages.
    for _, one in ipairs(vim.islist(message) and message or { message }) do
      local wrong = check_message(one)
      if wrong then
        return wrong
      end
    end
  end
  return nil, entry
end

return M

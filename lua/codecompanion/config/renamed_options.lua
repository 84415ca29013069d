---Moves options of any version of codecompanion.nvim that exist here under another key. They are moved before the
---configuration is checked, so a copied configuration works unchanged.

local sorted = require("codecompanion.values.sorted")

local M = {}

---Key path in codecompanion.nvim → ours, in lookup order. `*` matches any one part.
---@type { [1]: string, [2]: string }[]
local MOVED = {
  { "strategies", "interactions" },
  { "memory", "rules" },
  { "rules.opts.chat.default_memory", "rules.opts.chat.autoload" },
  { "rules.opts.chat.default_rules", "rules.opts.chat.autoload" },
  { "rules.opts.chat.condition", "rules.opts.chat.enabled" },
  { "opts.system_prompt", "interactions.chat.opts.system_prompt" },
  { "adapters.opts.proxy", "adapters.http.opts.proxy" },
  { "display.chat.show_references", "display.chat.show_context" },
  { "interactions.chat.variables", "interactions.chat.editor_context" },
  { "interactions.shared.editor_context", "interactions.chat.editor_context" },
  { "interactions.chat.keymaps.auto_tool_mode", "interactions.chat.keymaps.yolo_mode" },
  { "interactions.chat.tools.cmd_runner", "interactions.chat.tools.run_command" },
  {
    "interactions.chat.tools.*.opts.requires_approval",
    "interactions.chat.tools.*.opts.require_approval_before",
  },
  { "interactions.chat.tools.*.opts.user_approval", "interactions.chat.tools.*.opts.require_approval_before" },
  { "mcp.servers.*.opts.enabled", "mcp.servers.*.enabled" },
  { "mcp.servers.*.tool_defaults.require_approval_before", "mcp.servers.*.require_approval_before" },
  { "interactions.chat.tools.opts.folds.enabled", "display.chat.fold_tools" },
}

---Keys of `adapters` that are not adapters.
local NO_ADAPTERS = { http = true, acp = true, opts = true, non_llms = true }

---@class CodeCompanion.Move
---@field from string Key path in the user's options
---@field to string Key path used here

---@class CodeCompanion.Moving
---@field moves CodeCompanion.Move[]
---@field options table The copy to modify
---@field own table<table, boolean> Tables of the copy that may be modified
local Moving = {}
Moving.__index = Moving

---Return a modifiable table at `key`, or nil if the value is not a table.
---@param parent table
---@param key string
---@param make boolean
---@return table?
function Moving:inner(parent, key, make)
  local inner = parent[key]
  if inner == nil and make then
    inner = {}
    self.own[inner] = true
    parent[key] = inner
  end
  if type(inner) ~= "table" then
    return nil
  end
  if not self.own[inner] then
    inner = vim.tbl_extend("force", {}, inner)
    self.own[inner] = true
    parent[key] = inner
  end
  return inner
end

---Merge one table into another without overwriting existing values.
---@param target table
---@param source table
function Moving:fill(target, source)
  for key, value in pairs(source) do
    if target[key] == nil then
      target[key] = value
    elseif type(value) == "table" and type(target[key]) == "table" and not vim.islist(value) then
      self:fill(self:inner(target, key, false) --[[@as table]], value)
    end
  end
end

---Remove tables that a move has left empty.
---@param from string[] Key path of the moved value
function Moving:prune(from)
  for depth = #from - 1, 1, -1 do
    local parent = self.options
    for index = 1, depth - 1 do
      parent = parent[from[index]]
    end
    if next(parent[from[depth]]) ~= nil then
      return
    end
    parent[from[depth]] = nil
  end
end

---@param from string[]
---@param to string[]
function Moving:move(from, to)
  local source, target = self.options, self.options
  for index = 1, #from - 1 do
    local inner = type(source[from[index]]) == "table" and self:inner(source, from[index], false)
    if not inner then
      return
    end
    source = inner
  end
  local value = source[from[#from]]
  if value == nil then
    return
  end
  for index = 1, #to - 1 do
    local inner = self:inner(target, to[index], true)
    if not inner then
      return
    end
    target = inner
  end
  source[from[#from]] = nil
  local last = to[#to]
  if target[last] == nil then
    target[last] = value
  elseif type(value) == "table" and type(target[last]) == "table" then
    self:fill(self:inner(target, last, false) --[[@as table]], value)
  end
  self:prune(from)
  table.insert(self.moves, { from = table.concat(from, "."), to = table.concat(to, ".") })
end

---@param from string
---@param to string
function Moving:each(from, to)
  local before = from:match("^(.-)%.%*")
  if not before then
    return self:move(vim.split(from, ".", { plain = true }), vim.split(to, ".", { plain = true }))
  end
  local parts = vim.split(before, ".", { plain = true })
  local at = vim.tbl_get(self.options, unpack(parts))
  for name in sorted(type(at) == "table" and at or {}) do
    if type(name) == "string" then
      local function named(path)
        return vim.tbl_map(function(part)
          return part == "*" and name or part
        end, vim.split(path, ".", { plain = true }))
      end
      self:move(named(from), named(to))
    end
  end
end

---Move `adapters.<name>` of versions before 17.14, which had only HTTP adapters.
function Moving:adapters()
  local adapters = self.options.adapters
  for name in sorted(type(adapters) == "table" and adapters or {}) do
    if type(name) == "string" and not NO_ADAPTERS[name] then
      self:move({ "adapters", name }, { "adapters", "http", name })
    end
  end
end

---Drop callbacks that only name the built-in action of their key (`"keymaps.send"`).
function Moving:callbacks()
  local path = { "interactions", "chat", "keymaps" }
  local at = vim.tbl_get(self.options, unpack(path))
  for name, keymap in pairs(type(at) == "table" and at or {}) do
    local callback = type(keymap) == "table" and keymap.callback
    if type(callback) == "string" and callback:match("^keymaps%.") then
      local keymaps = self.options
      for _, part in ipairs(path) do
        keymaps = self:inner(keymaps, part, false) --[[@as table]]
      end
      self:inner(keymaps, name, false).callback = nil
    end
  end
end

---Return a copy of the configuration with renamed options moved, and the list of moves.
---@param user any Argument of setup(), not modified
---@return any options
---@return CodeCompanion.Move[] moves
function M.apply(user)
  if type(user) ~= "table" then
    return user, {}
  end
  local options = vim.tbl_extend("force", {}, user)
  local moving = setmetatable({ options = options, moves = {}, own = { [options] = true } }, Moving)
  for _, pair in ipairs(MOVED) do
    moving:each(pair[1], pair[2])
  end
  moving:adapters()
  moving:callbacks()
  return options, moving.moves
end

return M

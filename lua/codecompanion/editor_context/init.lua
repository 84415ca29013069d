---Evaluates the editor context mentioned in a message (`#{diagnostics}`) when the message is sent. Built-in and
---user-defined items (`interactions.chat.editor_context`) work the same way; only mentioned items are evaluated.

local mentions = require("codecompanion.editor_context.mentions")
local place = require("codecompanion.editor_context.working_window")
local send_code = require("codecompanion.editor_context.send_code")

local M = {}

---@class CodeCompanion.EditorContext.Text
---@field text string
---@field title? string Heading, shown before the file and its lines
---@field path? string File that contains the text
---@field first? integer First line in the file, 1-based
---@field whole? boolean The text is the whole file
---@field language? string
---@field unsaved? boolean
---@field partial? boolean The lines of the text are only parts of the lines in the file

---@class CodeCompanion.EditorContext.Item
---@field name string
---@field description string
---@field argument? string Syntax of the argument; nil if the item takes none
---@field needs_argument? boolean
---@field complete? fun(lead: string, files: table): string[] Returns completions of the argument; `files`: files of the
---project
---@field callback? fun(at: CodeCompanion.EditorContext.At, done?: fun(content: any, more?: boolean)): any
---@field async? boolean The callback calls `done`; partial results passed with `more` are used after a timeout
---@field anywhere? boolean The item does not depend on the working window
---@field timeout? integer In milliseconds
---@field keep? "head"|"tail" Which end is kept if the text does not fit
---@field by_host? boolean The host reads the content that the argument names
---@field of_host? boolean The host recognises the mention in the message itself
---@field is_own? boolean The item is user-defined
---@field contains_code? boolean The item is not sent while `opts.send_code` is false

local GROUPS = { "buffer_items", "list_items", "host_items", "symbol_items" }
local DEFAULT_TIMEOUT = 10000

---@type table<string, CodeCompanion.EditorContext.Item>?
local built_in
---@type CodeCompanion.EditorContext.Item[] Items added by other parts of the plugin
local added = {}

---@return table<string, CodeCompanion.EditorContext.Item>
local function builtin_items()
  if not built_in then
    built_in = {}
    for _, group in ipairs(GROUPS) do
      for _, item in ipairs(require("codecompanion.editor_context.items." .. group)) do
        built_in[item.name] = item
      end
    end
  end
  return built_in
end

---Register an item defined by a part of the plugin that is loaded on demand.
---@param item CodeCompanion.EditorContext.Item
function M.register(item)
  added = vim.tbl_filter(function(known)
    return known.name ~= item.name
  end, added)
  added[#added + 1] = item
end

---@param name string
---@param given table The item's configuration
---@param known? CodeCompanion.EditorContext.Item
---@return CodeCompanion.EditorContext.Item
local function configured(name, given, known)
  local opts = given.opts or {}
  if not given.callback then
    local contains_code = opts.contains_code ~= false
    return vim.tbl_extend("force", known or {}, { description = given.description, contains_code = contains_code })
  end
  return {
    name = name,
    description = given.description or known and known.description or "Your own",
    argument = opts.has_params and (known and known.argument or "argument") or nil,
    complete = opts.complete or known and known.complete or nil,
    callback = given.callback,
    async = opts.async,
    timeout = opts.timeout,
    is_own = true,
    contains_code = opts.contains_code,
  }
end

---Return all enabled items in the order in which they are offered.
---@return CodeCompanion.EditorContext.Item[]
function M.list()
  local given = require("codecompanion.config").options.interactions.chat.editor_context
  local names = vim.list_extend({}, require("codecompanion.config.options.editor_context").NAMES)
  local items, known = {}, builtin_items()
  for _, name in ipairs(names) do
    if given[name] ~= false then
      items[#items + 1] = configured(name, given[name] or {}, known[name])
    end
  end
  items[#items + 1] = known.codebase and vim.tbl_extend("force", known.codebase, { contains_code = true })
  vim.list_extend(items, added)
  for name in require("codecompanion.values.sorted")(given) do
    if not known[name] and given[name] then
      items[#items + 1] = configured(name, given[name])
    end
  end
  return items
end

---@param name string
---@return CodeCompanion.EditorContext.Item?
function M.get(name)
  local key, known = name:lower(), builtin_items()
  local given = require("codecompanion.config").options.interactions.chat.editor_context
  local is_named = vim.list_contains(require("codecompanion.config.options.editor_context").NAMES, key)
  if is_named and given[key] ~= false then
    return configured(key, given[key] or {}, known[key]) -- most messages with mentions need only one item
  end
  for _, item in ipairs(M.list()) do
    if item.name:lower() == name:lower() then
      return item
    end
  end
end

---Evaluate the items that a message mentions. Slow items are evaluated after the message is sent (`later`).
---@param text string
---@param chat? { id: string, bufnr: integer }
---@return table[] items `requests.EditorItem`
---@return (fun(done: fun(items: table[])))? later
---@return string? problem Why the message cannot be sent
function M.take(text, chat)
  local taken, late = {}, {}
  local at ---@type CodeCompanion.EditorContext.At
  local is_allowed ---@type boolean?
  for _, mention in ipairs(mentions.of(text)) do
    local item = M.get(mention.name)
    if item and item.contains_code then
      is_allowed = is_allowed == nil and send_code.is_allowed() or is_allowed or false
      if not is_allowed then
        return {}, nil, ("Not sent: %s is code, and %s."):format(mention.written, send_code.WHY)
      end
    end
    if item and not item.of_host then
      local depends = not item.anywhere and not item.by_host
      at = at or depends and place.at() or nil -- this may take milliseconds with hundreds of buffers
      local here = vim.tbl_extend("force", at or place.NOWHERE, { argument = mention.argument, chat = chat })
      local answer = require("codecompanion.editor_context.ask_items").ask(item, mention, here)
      if answer.error then
        return {}, nil, ("Not sent: %s: %s."):format(mention.written, (answer.error:gsub("%.$", "")))
      end
      taken[#taken + 1] = answer
      if answer.comes == "later" then
        late[#late + 1] = { item = item, mention = mention, at = here }
      end
    end
  end
  return taken,
    #late > 0 and function(done)
      require("codecompanion.editor_context.ask_items").later(late, DEFAULT_TIMEOUT, done)
    end or nil
end

return M

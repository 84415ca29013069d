---Options of editor context items, both built-in and user-defined.

local M = {}

---Names of the built-in items, in the order of completion. A test compares them with `codecompanion.editor_context`.
M.NAMES = {
  "buffer",
  "buffers",
  "selection",
  "viewport",
  "diagnostics",
  "quickfix",
  "diff",
  "file",
  "lsp",
  "terminal",
  "messages",
}

---Built-in items that take an argument.
local WITH_ARGUMENT = { "buffer", "diagnostics", "diff", "file", "terminal" }

---@param optional boolean
---@param takes_argument boolean
---@return CodeCompanion.Option[]
local function fields_of(optional, takes_argument)
  return {
    {
      name = "callback",
      type = { "function", "string" },
      optional = true,
      signature = "fun(at: CodeCompanion.EditorContext.At, done?: fun(content: any)): any",
      description = optional and "Returns the content, in place of the built-in one."
        or "Function that returns the content, or the path of a Lua file that returns the function.",
    },
    {
      name = "description",
      type = "string",
      optional = true,
      description = "Text shown in the completion menu.",
    },
    {
      name = "opts",
      description = "Options of the item.",
      fields = {
        {
          name = "async",
          type = "boolean",
          default = false,
          description = "The callback calls `done(content)`.",
        },
        {
          name = "timeout",
          type = "integer",
          min = 1,
          default = 10000,
          description = "Time limit for `done`.",
        },
        {
          name = "has_params",
          type = "boolean",
          default = takes_argument,
          description = optional and "Your callback takes an argument, `#{name:argument}`."
            or "The callback takes an argument, `#{name:argument}`.",
        },
        {
          name = "contains_code",
          type = "boolean",
          default = optional,
          description = "Refuse the item while `opts.send_code` is false.",
        },
        {
          name = "complete",
          type = "function",
          optional = true,
          signature = "fun(lead: string): string[]",
          description = "Completes the argument.",
        },
      },
    },
  }
end

---@return CodeCompanion.Option[]
function M.fields()
  return vim.tbl_map(function(name)
    return {
      name = name,
      description = ("`#{%s}`"):format(name),
      disable = true,
      fields = fields_of(true, vim.list_contains(WITH_ARGUMENT, name)),
    }
  end, M.NAMES)
end

---@return CodeCompanion.Option
function M.own()
  return {
    name = "<name>",
    description = "Your own item, `#{name}`.",
    disable = true,
    fields = fields_of(false, false),
    require = "callback",
  }
end

return M

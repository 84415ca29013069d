---Options of user-defined tools: `interactions.chat.tools.<name>`. The host checks their schemas
---(python/codecompanion/tools/parameter_schema.py).

local own_tools = require("codecompanion.config.own_tool_settings")

return {
  name = "<name>",
  description = "Your own tool, see |codecompanion-own-tools|.",
  disable = true,
  one_of = { "callback", "python" },
  fields = {
    {
      name = "description",
      type = "string",
      optional = true,
      description = "Description of the tool for the model.",
    },
    {
      name = "schema",
      type = "table",
      optional = true,
      description = "JSON schema of the arguments, or a function definition as in OpenAI's API; none by default.",
    },
    {
      name = "callback",
      type = { "function", "table" },
      optional = true,
      check = own_tools.check_callback,
      signature = "fun(arguments: table, context: CodeCompanion.ToolContext, done: fun(result: any)): any",
      description = "The Lua function, or a tool of codecompanion.nvim.",
    },
    {
      name = "python",
      type = "string",
      optional = true,
      check = own_tools.check_python,
      description = 'The Python function: `path/to/file.py:function` (from `stdpath("config")`) or'
        .. " `module.path:function`.",
    },
    {
      name = "enabled",
      type = { "boolean", "function" },
      default = true,
      signature = "fun(): boolean",
      description = "Offer the tool. A function is called when the host starts.",
    },
    {
      name = "opts",
      description = "How the tool runs.",
      fields = {
        {
          name = "require_approval_before",
          type = "boolean",
          default = true,
          description = "Ask before each call.",
        },
        {
          name = "allowed_in_yolo_mode",
          type = "boolean",
          default = true,
          description = "Run this tool without asking in YOLO mode; false asks even then.",
        },
        {
          name = "timeout",
          type = "integer",
          min = 1,
          default = 60000,
          description = "Time limit for a call.",
        },
      },
    },
  },
}

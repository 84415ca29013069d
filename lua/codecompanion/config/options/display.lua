---Display options: `display.chat`.

---@param name string
---@param default number
---@param description string
---@return CodeCompanion.Option
local function size(name, default, description)
  return {
    name = name,
    type = { "number", "function" },
    default = default,
    signature = "fun(): number",
    description = description,
    check = function(value)
      if type(value) == "number" and (value <= 0 or (value > 1 and value % 1 ~= 0)) then
        return ("got %s; expected a fraction (0 < x ≤ 1) or a whole number of cells"):format(value)
      end
      return nil, value
    end,
  }
end

local window = {
  {
    name = "layout",
    type = "string",
    enum = { "vertical", "horizontal", "float", "tab", "buffer" },
    default = "vertical",
    description = "Where a chat opens.",
  },
  {
    name = "position",
    type = "string",
    enum = { "left", "right", "top", "bottom" },
    optional = true,
    description = "Side of a split; by default as set by 'splitright' and 'splitbelow'.",
  },
  { name = "full_height", type = "boolean", default = true, description = "Use the full height for a vertical split." },
  size("width", 0.5, "Width: a fraction of the editor (up to 1, at least `min_width`), or columns."),
  {
    name = "min_width",
    type = "integer",
    min = 0,
    default = 60,
    description = "Minimum columns of a vertical split; if fewer than 40 would remain, `narrow_layout` is used. 0 = no"
      .. " minimum.",
  },
  {
    name = "narrow_layout",
    type = "string",
    enum = { "float", "buffer", "tab", "horizontal", "vertical" },
    default = "buffer",
    description = "Layout if there is no room for a vertical split. `buffer` takes another file's window, or else the"
      .. " current one; if both are too narrow, the chat floats.",
  },
  size("height", 0.8, "Height: a fraction of the editor (up to 1), or lines."),
  {
    name = "border",
    type = { "string", "list" },
    items = { type = { "string", "list" }, items = { type = "string" } },
    default = "rounded",
    description = "Border of a float, as for |nvim_open_win()|.",
  },
  {
    name = "relative",
    type = "string",
    enum = { "editor", "cursor", "win" },
    default = "editor",
    description = "Reference point for the position of a float.",
  },
  { name = "buflisted", type = "boolean", default = false, description = "List the chat buffer." },
  {
    name = "opts",
    type = "table",
    default = { breakindent = true, breakindentopt = "list:-1", linebreak = true, smoothscroll = true, wrap = true },
    description = "Window-local options of the chat window.",
  },
}

return {
  { name = "window", description = "The Neovim window of the chat.", fields = window },
  {
    name = "auto_scroll",
    type = "boolean",
    default = true,
    description = "Follow the reply while the cursor is at the end.",
  },
  {
    name = "intro_message",
    type = "string",
    default = "Welcome to CodeCompanion. Type / for commands, #{ for context.",
    description = "Text shown in an empty chat.",
  },
  {
    name = "separator",
    type = "string",
    default = "─",
    description = "Character used for the line after a header.",
  },
  {
    name = "show_header_separator",
    type = "boolean",
    default = false,
    description = "Draw a line after each header.",
  },
  { name = "show_context", type = "boolean", default = true, description = "List the attachments at the top." },
  { name = "fold_context", type = "boolean", default = false, description = "Fold the list of attachments." },
  { name = "show_reasoning", type = "boolean", default = true, description = "Show the model's reasoning." },
  { name = "fold_reasoning", type = "boolean", default = true, description = "Fold the model's reasoning." },
  { name = "fold_tools", type = "boolean", default = true, description = "Fold tool calls and their results." },
  { name = "show_token_count", type = "boolean", default = true, description = "Show token counts next to headers." },
  {
    name = "token_count",
    type = "function",
    optional = true,
    signature = "fun(tokens: integer): string",
    description = "Format of a token count.",
  },
  {
    name = "show_meter",
    type = "boolean",
    default = true,
    description = "Show the context size at the input if no bar shows it.",
  },
  {
    name = "winbar",
    type = "string",
    enum = { "auto", "always", "never" },
    default = "auto",
    description = "Show title, model and size in the 'winbar'; `auto`: if no status line does. Your own is kept.",
  },
  {
    name = "tabline",
    type = "boolean",
    default = true,
    description = "Show the titles of chats in the tab line. Your own 'tabline' is kept.",
  },
  {
    name = "notify_unseen",
    type = "boolean",
    default = true,
    description = "Notify once of a pending approval or a finished turn in a chat that is not visible.",
  },
  { name = "start_in_insert_mode", type = "boolean", default = false, description = "Open a chat in Insert mode." },
}

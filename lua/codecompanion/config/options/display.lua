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
        return ("%s is neither a share (0 < x ≤ 1) nor a whole number of cells"):format(value)
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
    description = "Side of a split; by default from 'splitright' and 'splitbelow'.",
  },
  { name = "full_height", type = "boolean", default = true, description = "Use the full height for a vertical split." },
  size("width", 0.5, "Width: a share of the editor (up to 1), or columns."),
  {
    name = "min_width",
    type = "integer",
    min = 0,
    default = 60,
    description = "Minimum columns of a vertical split whose width is a share of the editor. If that leaves fewer than"
      .. " 40 columns beside it, `narrow_layout` is used instead. 0 = no minimum."
      .. " In a terminal that shrinks later, a split keeps its layout and shrinks down to `width`.",
  },
  {
    name = "narrow_layout",
    type = "string",
    enum = { "float", "buffer", "tab", "horizontal", "vertical" },
    default = "buffer",
    description = "Where a chat opens if there is no room for a vertical split. `buffer` uses the current window, or a"
      .. " float if that window is narrow as well.",
  },
  size("height", 0.8, "Height: a share of the editor (up to 1), or lines."),
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
    description = "Position of a float: relative to the editor, the window or the cursor.",
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
  { name = "window", description = "The window of the chat.", fields = window },
  {
    name = "auto_scroll",
    type = "boolean",
    default = true,
    description = "Follow the reply in windows whose cursor is at the end.",
  },
  {
    name = "intro_message",
    type = "string",
    default = "Welcome to CodeCompanion. Press g? in normal mode for the keys.",
    description = "Text of an empty chat; an empty string shows nothing.",
  },
  {
    name = "separator",
    type = "string",
    default = "─",
    description = "Character of the line after a header.",
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
  { name = "show_token_count", type = "boolean", default = true, description = "Show token counts at headers." },
  {
    name = "token_count",
    type = "function",
    optional = true,
    signature = "fun(tokens: integer): string",
    description = "Returns the text of a token count, instead of `(2.1k tokens)`.",
  },
  {
    name = "show_meter",
    type = "boolean",
    default = true,
    description = "Show the context usage at the header of the input, if no bar of the chat does.",
  },
  {
    name = "winbar",
    type = "string",
    enum = { "auto", "always", "never" },
    default = "auto",
    description = "Show title or state, model and context usage in the 'winbar' of chat windows. `auto`: if"
      .. " the status line does not, that is in a float, with 'laststatus' 0, 1 or 3, or with your own status line."
      .. " Your own 'winbar' is never changed.",
  },
  {
    name = "tabline",
    type = "boolean",
    default = true,
    description = "Show the titles of chats in the tab line, instead of the names of their buffers. A 'tabline' of your"
      .. " own is never changed.",
  },
  {
    name = "notify_unseen",
    type = "boolean",
    default = true,
    description = "Notify once with `vim.notify()` when an approval is waiting or a turn is complete in a chat that is"
      .. " not visible, or while another program has the focus.",
  },
  { name = "start_in_insert_mode", type = "boolean", default = false, description = "Open a chat in insert mode." },
  {
    name = "treesitter_max_lines",
    type = "integer",
    min = 0,
    default = 2000,
    description = "Stop a treesitter highlighter that your autocmds started in a chat of more lines than this, because"
      .. " it would freeze a streaming reply. The chat highlights its Markdown itself, in pieces.",
  },
}

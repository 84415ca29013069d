---Defines the keymaps of the chat buffer: the single list for the buffer, its `g?` window and the help file.

local M = {}

local MODES = { "n", "i", "v" }

---@type { [1]: string, [2]: table<string, string|string[]>, [3]: string }[]
local KEYS = {
  { "options", { n = "g?" }, "Show keys and commands" },
  { "completion", { i = "<C-_>" }, "Complete commands, context and paths" },
  { "send", { n = { "<CR>", "<C-s>" }, i = "<C-s>" }, "Send the message" },
  { "regenerate", { n = "gr" }, "Regenerate the last reply" },
  { "edit_message", { n = "g<CR>" }, "Edit and resend your message under the cursor" },
  { "close", { n = "<C-c>" }, "Close the chat (q stops a reply)" },
  { "stop", { n = "q" }, "Stop what is running (asks if it is not visible)" },
  { "clear", { n = "gC" }, "Clear the chat (/undo restores it)" },
  { "codeblock", { n = "gc" }, "Insert an empty code block" },
  { "yank_code", { n = "gy" }, "Yank the code block under the cursor, or the last one above" },
  { "next_chat", { n = "]b" }, "Next chat" },
  { "previous_chat", { n = "[b" }, "Previous chat" },
  { "next_header", { n = "]]" }, "Next header" },
  { "previous_header", { n = "[[" }, "Previous header" },
  { "change_adapter", { n = "ga" }, "Choose a model" },
  { "attach_path", { n = "gA" }, "Attach the file whose path is under the cursor" },
  { "toggle_live", { n = { "gba", "gbd" } }, "Turn live updates (↻) of the attached file on or off" },
  { "toggle_fold", { n = "<Tab>" }, "Open or close the fold under the cursor" },
  { "debug", { n = "gd" }, "Inspect the next request" },
  { "preview", { n = "gp" }, "Preview what editing and compaction would change" },
  { "show_original", { n = "K" }, "Show the full content under the cursor" },
  { "next_change", { n = "]e" }, "Next file change" },
  { "previous_change", { n = "[e" }, "Previous file change" },
  { "revert_change", { n = "gX" }, "Revert the file change under the cursor, or reapply it" },
  { "open_file", { n = { "gf", "gF", "gR" } }, "Open the file, or show the cleared result, under the cursor" },
  { "restore", { n = "r" }, "Restore the cleared or compacted message under the cursor" },
  { "undo", { n = "u" }, "Undo typing, ✂ or a summary; on a rejected change, propose it again" },
  { "redo", { n = "<C-r>" }, "Redo" },
  { "system_prompt", { n = "gs" }, "Show the system prompt" },
  { "yolo_mode", { n = "gty" }, "Toggle YOLO mode (run tools without asking)" },
  { "trust", { n = "gtr" }, "Review and trust the files of the folder" },
  { "next_approval", { n = "]a" }, "Go to the pending approval" },
}

---Return the option that sets the keys of an action for each mode.
---@param modes table<string, string|string[]>
---@return CodeCompanion.Option
function M.modes(modes)
  local fields = {}
  for _, mode in ipairs(MODES) do
    fields[#fields + 1] = {
      name = mode,
      type = { "string", "list" },
      items = { type = "string" },
      optional = true,
      default = modes[mode],
      description = "Keys in this mode.",
    }
  end
  return {
    name = "modes",
    description = "Keys by mode; they replace the default keys.",
    fields = fields,
    replace = true,
  }
end

---@param modes table<string, string|string[]>
---@param description string?
---@return CodeCompanion.Option[]
local function fields_of(modes, description)
  return {
    M.modes(modes),
    {
      name = "description",
      type = "string",
      default = description,
      optional = description == nil,
      description = "Text shown in the `g?` window.",
    },
    {
      name = "callback",
      type = "function",
      optional = true,
      signature = "fun(chat: table)",
      description = "Function to call instead of the built-in action.",
    },
    {
      name = "opts",
      type = "table",
      optional = true,
      description = "Options for |vim.keymap.set()|, such as { nowait = true }.",
    },
  }
end

---Return the built-in keymaps in the order of the `g?` window.
---@return CodeCompanion.Option[]
function M.list()
  return vim.tbl_map(function(key)
    return { name = key[1], description = key[3], disable = true, keymap = true, fields = fields_of(key[2], key[3]) }
  end, KEYS)
end

---Return whether an action is built in.
---@param name string
---@return boolean
function M.is_builtin(name)
  for _, key in ipairs(KEYS) do
    if key[1] == name then
      return true
    end
  end
  return false
end

---Return the option for a user-defined keymap: the same shape without defaults.
---@return CodeCompanion.Option
function M.custom()
  return {
    name = "<name>",
    description = "Your own mapping.",
    disable = true,
    fields = fields_of({}, nil),
    require = "callback",
  }
end

return M

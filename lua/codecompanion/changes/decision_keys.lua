---Maps the keys that decide on a proposed change: one set of verbs for approvals, diffs, edits in place and the review.
---The keys are mapped in a buffer while it has something to decide; afterwards the previous mappings are restored.
---
---If the user's own mappings begin with a default key, that key would fire in the middle of them, so the next free key
---of `ALTERNATIVES` replaces it. A configured key is used as it is.

local api = vim.api

local M = {}

---Verbs that decide on a change; the other verbs navigate or show something.
local DECIDES = { accept_change = true, reject_change = true, always_accept = true, cancel = true, skip_hunk = true }
---Replacements for a default key of the form `g2`.
local ALTERNATIVES = { "gz%s", "<LocalLeader>%s", "<Leader>%s" }
---Descriptions of the verbs where the decision is about a change, never about a tool call.
M.OF_CHANGES = {
  accept_change = "Accept the change; in Visual mode only the selected hunks",
  reject_change = "Reject the change; in Visual mode only the selected hunks",
}
---Prefix of `desc` in `vim.keymap.set`; it distinguishes our mappings from the user's.
local OURS = "CodeCompanion: "

---@return { [1]: string, [2]: table<string, string|string[]>, [3]: string }[]
local function verbs()
  return require("codecompanion.config.options.changes").KEYS
end

---@param entry? { modes?: table<string, string|string[]> }|false
---@param mode string
---@return string[]
local function keys_in(entry, mode)
  local keys = entry and entry.modes and entry.modes[mode] or {}
  return type(keys) == "table" and keys or { keys }
end

---Return whether a mapping is one of these keys.
---@param map table
---@return boolean
function M.is_ours(map)
  return vim.startswith(map.desc or "", OURS)
end

---Return whether a mapping of the user or of another plugin begins with a key.
---@param key string
---@param mode string
---@param bufnr integer
---@return boolean
local function is_taken(key, mode, bufnr)
  local wanted = vim.keycode(key)
  mode = mode == "v" and "x" or mode
  for _, maps in ipairs({ api.nvim_buf_get_keymap(bufnr, mode), api.nvim_get_keymap(mode) }) do
    for _, map in ipairs(maps) do
      if vim.startswith(map.lhsraw or vim.keycode(map.lhs), wanted) and not M.is_ours(map) then
        return true
      end
    end
  end
  return false
end

---Return a free key for a default key in a buffer: the key itself if it is free, or nil if all alternatives are taken.
---@param key string
---@param mode string
---@param bufnr integer
---@return string?
local function free(key, mode, bufnr)
  local last = key:match("^g(%d)$")
  if not is_taken(key, mode, bufnr) then
    return key
  end
  for _, form in ipairs(last and ALTERNATIVES or {}) do
    local other = vim.fn.keytrans(vim.keycode(form:format(last)))
    if not is_taken(other, mode, bufnr) then
      return other
    end
  end
end

---@type table<integer, table<string, string[]>> Keys that are currently mapped, by buffer
local set_in = {}

---Return the keys of a verb in a buffer.
---@param name string
---@param mode string
---@param bufnr? integer Defaults to the current buffer
---@return string[]
function M.keys(name, mode, bufnr)
  bufnr = bufnr or api.nvim_get_current_buf()
  local known = set_in[bufnr] and set_in[bufnr][mode .. name]
  if known then
    return known
  end
  local configured = keys_in(require("codecompanion.config").options.interactions.shared.keymaps[name], mode)
  local default
  for _, verb in ipairs(verbs()) do
    default = verb[1] == name and keys_in({ modes = verb[2] }, mode) or default
  end
  if not DECIDES[name] or not vim.deep_equal(configured, default) then
    return configured
  end
  local found = {}
  for _, key in ipairs(configured) do
    found[#found + 1] = free(key, mode, bufnr)
  end
  return found
end

---Return the first key of a verb in Normal mode, or nil.
---@param name string
---@param bufnr? integer Defaults to the current buffer
---@return string?
function M.of(name, bufnr)
  return M.keys(name, "n", bufnr)[1]
end

---Return the keys that accept only the hunk under the cursor, such as `Vg2`, or nil if none are mapped.
---@param bufnr? integer
---@return string?
function M.selecting(bufnr)
  local key = M.keys("accept_change", "v", bufnr)[1]
  return key and "V" .. key or nil
end

---Return a short hint about keys: `g2 accept · g3 reject`; verbs without a key are omitted.
---@param actions { [1]: string, [2]: string }[] Verb, or key with a leading `=`, and its label
---@param before? string Prefix, unless the hint is empty
---@param bufnr? integer
---@return string
function M.hint(actions, before, bufnr)
  local parts = {}
  for _, action in ipairs(actions) do
    local key = action[1]:match("^=(.*)$") or M.of(action[1], bufnr)
    parts[#parts + 1] = key and (key .. " " .. action[2])
  end
  return #parts == 0 and "" or ((before or "") .. table.concat(parts, " · "))
end

---Return the verbs with their keys in a buffer and descriptions, for windows that list them.
---@param bufnr? integer
---@param offered? table<string, boolean> Verbs that are listed, all by default
---@param texts? table<string, string> Descriptions that replace the general ones, by verb
---@return { name: string, keys: string, text: string }[]
function M.described(bufnr, offered, texts)
  local rows = {}
  for _, verb in ipairs(verbs()) do
    local keys = table.concat(M.keys(verb[1], "n", bufnr), " ")
    if keys ~= "" and (not offered or offered[verb[1]]) then
      rows[#rows + 1] = { name = verb[1], keys = keys, text = texts and texts[verb[1]] or verb[3] }
    end
  end
  return rows
end

---Show keys in a float.
---@param title string
---@param rows { keys: string, text: string }[]
---@param note? string A sentence below the keys
function M.show(title, rows, note)
  local column = 0
  for _, row in ipairs(rows) do
    column = math.max(column, api.nvim_strwidth(row.keys))
  end
  local lines = vim.tbl_map(function(row)
    return ("  %s%s  %s"):format(row.keys, (" "):rep(column - api.nvim_strwidth(row.keys)), row.text)
  end, rows)
  vim.list_extend(lines, note and { "", "  " .. note } or {})
  require("codecompanion.screen.float").open({ title = title, lines = lines, footer = { "q close" } })
end

---@param name? string
---@return boolean
local function is_verb(name)
  return vim.iter(verbs()):any(function(verb)
    return verb[1] == name
  end)
end

---Return the `desc` of a verb's mapping.
---@param name string
---@return string
function M.desc(name)
  for _, verb in ipairs(verbs()) do
    if verb[1] == name then
      return OURS .. verb[3]
    end
  end
  return OURS .. name
end

---@class CodeCompanion.FurtherKey
---@field mode string
---@field lhs string
---@field action fun()
---@field text string
---@field verb? string

---@alias CodeCompanion.SetKeys { mode: string, lhs: string, before: table? }[]

---Map keys in a buffer.
---@param bufnr integer
---@param wanted { mode: string, lhs: string, action: fun(), text: string }[]
---@return CodeCompanion.SetKeys set Pass it to `restore`
local function set_all(bufnr, wanted)
  local set = {}
  for _, one in ipairs(wanted) do
    local before = api.nvim_buf_call(bufnr, function()
      return vim.fn.maparg(one.lhs, one.mode, false, true)
    end)
    set[#set + 1] = { mode = one.mode, lhs = one.lhs, before = before.buffer == 1 and before or nil }
    vim.keymap.set(one.mode, one.lhs, one.action, {
      buffer = bufnr,
      nowait = true,
      silent = true,
      desc = OURS .. one.text,
    })
  end
  return set
end

---End the selection and return its rows.
---@return { [1]: integer, [2]: integer } rows 0-based
local function selected_rows()
  local first, last = vim.fn.line("v"), vim.fn.line(".")
  vim.cmd.normal({ "\27", bang = true })
  return { math.min(first, last) - 1, math.max(first, last) - 1 }
end

---Map the keys of verbs and further keys in a buffer.
---@param bufnr integer
---@param actions table<string, fun(rows?: { [1]: integer, [2]: integer })> By verb; a verb without an action gets no
---key. In Visual mode actions receive the selected rows
---@param further? CodeCompanion.FurtherKey[] A further key with a verb's name replaces the verb's own key
---@param texts? table<string, string> Descriptions that replace the general ones, by verb
---@return CodeCompanion.SetKeys set Pass it to `restore`
function M.set(bufnr, actions, further, texts)
  local known = {}
  local wanted = vim.tbl_filter(function(one)
    return not is_verb(one.verb)
  end, further or {})
  for _, verb in ipairs(verbs()) do
    for _, mode in ipairs({ "n", "i", "v" }) do
      local action = actions[verb[1]]
      local own = vim.tbl_filter(function(one)
        return one.verb == verb[1] and one.mode == mode
      end, further or {})
      known[mode .. verb[1]] = #own > 0 and { own[1].lhs } or M.keys(verb[1], mode, bufnr)
      for _, lhs in ipairs(action and known[mode .. verb[1]] or {}) do
        wanted[#wanted + 1] = {
          mode = mode == "v" and "x" or mode,
          lhs = lhs,
          action = function()
            if vim.v.count == 0 or mode == "v" then -- a count belongs to a motion
              action(mode == "v" and selected_rows() or nil)
            end
          end,
          text = texts and texts[verb[1]] or verb[3],
        }
      end
    end
  end
  local set = set_all(bufnr, wanted)
  set_in[bufnr] = known
  return set
end

---Restore the previous mappings.
---@param bufnr integer
---@param set CodeCompanion.SetKeys
function M.restore(bufnr, set)
  set_in[bufnr] = nil
  if not api.nvim_buf_is_loaded(bufnr) then
    return
  end
  for index = #set, 1, -1 do
    local one = set[index]
    pcall(vim.keymap.del, one.mode, one.lhs, { buffer = bufnr })
    if one.before then
      api.nvim_buf_call(bufnr, function()
        vim.fn.mapset(one.mode, false, one.before)
      end)
    end
  end
end

return M

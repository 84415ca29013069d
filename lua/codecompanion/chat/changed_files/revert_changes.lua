---Reverts changes that tools made to files. The host does a three-way merge with later changes; the user is asked here.

local changes = require("codecompanion.changes.in_file")
local choose = require("codecompanion.screen.choose")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")

local M = {}

---Return a function that reports a refused revert on the command line: as a hint if a reply is running.
---@param chat CodeCompanion.Chat
---@return fun(reason: string)
function M.refused(chat)
  return function(reason)
    if chat.state ~= "idle" then
      return say.hint({ reason, "Wait until the reply is complete" })
    end
    say.line(reason, severity.ERROR)
  end
end

---Put a conflict into the buffer of the file, with conflict markers, unsaved.
---@param chat CodeCompanion.Chat
---@param conflict table
local function mark(chat, conflict)
  require("codecompanion.screen.open_file").file(conflict.path)
  local payload = { changes = conflict.changes, markers = true }
  session.request(chat, "revert_changes", payload, function(result)
    if #result.conflicts > 0 then
      return say.line(result.text, severity.WARN)
    end
    vim.fn.search("^<<<<<<< ", "cw")
    say.line("Conflict markers are in the buffer, unsaved; u removes them.")
  end, M.refused(chat))
end

---Propose the revert in the buffer of the file, hunk by hunk.
---@param chat CodeCompanion.Chat
---@param conflict table
local function propose(chat, conflict)
  local payload = { change_id = conflict.changes[1], texts = true }
  session.request(chat, "show_change", payload, function(shown)
    changes.propose(conflict.path, shown.after, shown.before)
  end)
end

---@param chat CodeCompanion.Chat
---@param conflicts table[]
local function ask_about(chat, conflicts)
  for _, conflict in ipairs(conflicts) do
    if conflict.can_compare then
      local choices = { "Keep the file unchanged", "Decide hunk by hunk in its buffer" }
      choices[3] = conflict.can_mark and "Put conflict markers into its buffer (unsaved)" or nil
      local prompt = ("%s: %s"):format(conflict.name, conflict.reason)
      local options = { prompt = prompt, kind = "codecompanion_revert" }
      return choose.select(choices, options, function(choice)
        if choice == choices[2] then
          propose(chat, conflict)
        elseif choice == choices[3] and choice then
          mark(chat, conflict)
        end
      end)
    end
  end
end

---Return the variants of the message about reverted or reapplied changes; `again` names the key that reapplies them.
---@param result table Answer of the host
---@param again? string
---@return string[]
function M.said(result, again)
  local is_reverted = again and result.reverted > 0 and not result.reapplied and #result.conflicts == 0
  if not is_reverted then
    return { result.text }
  end
  return {
    ("%s %s reapplies %s."):format(result.text, again, result.reverted == 1 and "it" or "them"),
    ("%s · %s reapplies"):format(result.text:gsub("%.$", ""), again),
    result.text,
  }
end

---Revert changes, or restore them if all of them are reverted.
---@param chat CodeCompanion.Chat
---@param ids string[]
---@param again? string The key that reapplies them, for the message
---@param done? fun(will_ask: boolean) Called after success or refusal; `will_ask`: a question follows
function M.revert(chat, ids, again, done)
  session.request(chat, "revert_changes", { changes = ids }, function(result)
    say.line(M.said(result, again), #result.conflicts > 0 and severity.WARN or severity.INFO)
    if done then
      local asks = vim.iter(result.conflicts):any(function(conflict)
        return conflict.can_compare
      end)
      done(asks)
    end
    ask_about(chat, result.conflicts)
  end, M.refused(chat))
end

---Return the ids of effective changes, newest first.
---@param rows table[]
---@param wanted fun(row: table): boolean
---@return string[] ids
local function ids_of(rows, wanted)
  local ids = {}
  for _, row in ipairs(rows) do
    if row.kind == "tool" and not row.reverted and wanted(row) then
      ids[#ids + 1] = row.change_id
    end
  end
  return ids
end

---Return the ids of changes in one turn, by default the newest turn with changes.
---@param rows table[]
---@param turn_id? string
---@return string[] ids
function M.of_turn(rows, turn_id)
  for _, row in ipairs(rows) do
    if not turn_id and row.kind == "tool" and not row.reverted then
      turn_id = row.turn_id
    end
  end
  return ids_of(rows, function(row)
    return row.turn_id == turn_id
  end)
end

---Return the ids of changes to one file.
---@param rows table[]
---@param path string
---@return string[] ids
function M.of_file(rows, path)
  return ids_of(rows, function(row)
    return row.path == path
  end)
end

---Return the file to revert: `%` and `#` are buffers, any other text is a literal name.
---@param what string
---@return string
local function path_of(what)
  local bufnr = (what == "%" and 0) or (what == "#" and vim.fn.bufnr("#")) or tonumber(what:match("^#(%d+)$")) or -1
  local name = bufnr >= 0 and vim.api.nvim_buf_is_valid(bufnr) and vim.api.nvim_buf_get_name(bufnr) or what
  return require("codecompanion.files.loaded_files").real_path(
    require("codecompanion.system.literal_paths").absolute(name)
  )
end

---Run `:CodeCompanionRevert turn` or `:CodeCompanionRevert {path}`.
---@param chat CodeCompanion.Chat
---@param what string
function M.chosen(chat, what)
  session.request(chat, "list_changes", {}, function(rows)
    local path = path_of(what)
    local ids = what == "turn" and M.of_turn(rows) or M.of_file(rows, path)
    if #ids == 0 then
      local text = what == "turn" and "No turn changed a file" or ("No tool changed %s"):format(what)
      return say.line(text .. ", or the changes are already reverted.", severity.WARN)
    end
    M.revert(chat, ids, "gX in :CodeCompanionRevert")
  end)
end

return M

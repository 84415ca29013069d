---Shows answers that a newer one replaces: folded and dimmed, with the key to restore them. The host reports them
---(`view_marks`).

local api = vim.api
local folds = require("codecompanion.chat.buffer.folds")
local keys = require("codecompanion.chat.state.configured_keys")
local marks = require("codecompanion.chat.buffer.row_marks")

local M = {}

M.ns = api.nvim_create_namespace("codecompanion.chat.replaced")

---@class CodeCompanion.Replaced
---@field id string Id of the change
---@field items string[] Ids of its messages
---@field undone boolean The change was undone: this is the newer answer
---@field fold? CodeCompanion.Fold
---@field mark? integer

---@param chat CodeCompanion.Chat
---@param answer CodeCompanion.Replaced
---@param count integer Number of lines
---@return { [1]: string, [2]: string }[]
local function text(chat, answer, count)
  -- narrow windows cut the end
  local parts = { answer.undone and "newer reply, undone" or "replaced by a new reply" }
  local undo, redo = keys.keys("undo", "n")[1], keys.keys("redo", "n")[1]
  if chat.next_undo == answer.id and undo then
    parts[#parts + 1] = undo .. " undo"
  elseif chat.next_redo == answer.id and redo then
    parts[#parts + 1] = redo .. " redo"
  end
  local show = keys.keys("show_original", "n")[1]
  parts[#parts + 1] = show and (show .. " original") or nil
  parts[#parts + 1] = ("%d line%s"):format(count, count == 1 and "" or "s")
  return { { "▸ ", "CodeCompanionFoldMark" }, { table.concat(parts, " · "), "CodeCompanionUndone" } }
end

---Return the rows of an answer with its header, as far as they are drawn.
---@param chat CodeCompanion.Chat
---@param answer CodeCompanion.Replaced
---@return integer? first
---@return integer? last Exclusive
local function rows_of(chat, answer)
  local first, last
  for _, id in ipairs(answer.items) do
    for _, item in ipairs(chat.by_message[id] or {}) do
      local from, to = marks.item_rows(chat, item)
      if from then
        first, last = math.min(first or from, from), math.max(last or to, to)
      end
    end
  end
  if not first then
    return nil
  end
  local header = api.nvim_buf_get_extmarks(chat.bufnr, marks.roles, { first, 0 }, 0, { limit = 1 })[1]
  if header and chat.roles[header[1]] == "llm" then
    first = header[2]
  end
  return first, last
end

---@param chat CodeCompanion.Chat
---@param answer CodeCompanion.Replaced
local function erase(chat, answer)
  if answer.fold and chat.folds[answer.fold.id] then
    folds.remove(chat, answer.fold)
  end
  if answer.mark then
    api.nvim_buf_del_extmark(chat.bufnr, M.ns, answer.mark)
  end
  answer.fold, answer.mark = nil, nil
end

---Fold and dim the drawn answers.
---@param chat CodeCompanion.Chat
function M.draw(chat)
  if #chat.answers_replaced == 0 then
    return
  end
  for _, answer in ipairs(chat.answers_replaced) do
    for _, id in ipairs(answer.items) do
      for _, item in ipairs(chat.by_message[id] or {}) do
        item.replaced = answer.id
      end
    end
    local first, last = rows_of(chat, answer)
    local at = answer.mark and api.nvim_buf_get_extmark_by_id(chat.bufnr, M.ns, answer.mark, { details = true }) or {}
    if first and last then
      local is_new = not (at[1] == first and at[3].end_row == last)
      if is_new then
        erase(chat, answer)
      end
      -- set even if unchanged: a closed fold is redrawn only if its lines change
      answer.mark = api.nvim_buf_set_extmark(chat.bufnr, M.ns, first, 0, {
        id = answer.mark,
        end_row = last,
        end_col = 0,
        right_gravity = true,
        end_right_gravity = false,
        hl_group = "CodeCompanionUndone",
        priority = 120,
        strict = false,
      })
      answer.fold = is_new
          and folds.add(chat, first, last - 1, {
            closed = true,
            marked = true,
            text = function()
              return text(chat, answer, last - first)
            end,
          })
        or answer.fold
    end
  end
end

---Update the replaced answers reported by the host.
---@param chat CodeCompanion.Chat
---@param replaced { change_id: string, items: string[], undone: boolean }[]
function M.update(chat, replaced)
  local known = {}
  for _, answer in ipairs(chat.answers_replaced) do
    known[answer.id] = answer
  end
  local now = {}
  for _, entry in ipairs(replaced) do
    local answer = known[entry.change_id]
    if not answer or answer.undone ~= entry.undone then
      answer = { id = entry.change_id, items = entry.items, undone = entry.undone }
    else
      known[entry.change_id] = nil
    end
    now[#now + 1] = answer
  end
  for _, gone in pairs(known) do
    erase(chat, gone)
    for _, item in pairs(chat.items) do
      if item.replaced == gone.id then
        item.replaced = nil
      end
    end
  end
  chat.answers_replaced = now
  M.draw(chat)
end

---Return the replaced answer at a row.
---@param chat CodeCompanion.Chat
---@param row integer 0-based
---@return CodeCompanion.Replaced?
function M.at(chat, row)
  for _, answer in ipairs(chat.answers_replaced) do
    local at = answer.mark and api.nvim_buf_get_extmark_by_id(chat.bufnr, M.ns, answer.mark, { details = true }) or {}
    if at[1] and at[1] <= row and row < at[3].end_row then
      return answer
    end
  end
end

return M

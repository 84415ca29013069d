---Tracks messages that are no longer sent, and the changes that removed them (`chat.gone`).

local M = {}

---@param chat CodeCompanion.Chat
---@param item table
---@return string? kind Kind of the change that removed it, or nil if it is sent
function M.kind(chat, item)
  if item.summary_ids then
    local kind
    for _, id in ipairs(item.summary_ids) do
      kind = chat.gone[id]
      if not kind then
        return nil
      end
    end
    return kind
  end
  return item.message_id and not item.replaced and chat.gone[item.message_id] or nil
end

---Replace the set of removed messages.
---@param chat CodeCompanion.Chat
---@param by_kind table<string, string[]>
---@return boolean changed
function M.set(chat, by_kind)
  local now, changed = {}, false
  for kind, ids in pairs(by_kind) do
    for _, id in ipairs(ids) do
      now[id] = kind
      changed = changed or chat.gone[id] ~= kind
    end
  end
  for id in pairs(chat.gone) do
    changed = changed or not now[id]
  end
  chat.gone = now
  return changed
end

---Return whether the message is folded because it is no longer sent.
---@param chat CodeCompanion.Chat
---@param item table
---@return boolean
function M.is_gone(chat, item)
  return M.kind(chat, item) ~= nil or item.message_id ~= nil and chat.gone[item.message_id] ~= nil
end

return M

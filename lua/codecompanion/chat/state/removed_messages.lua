---Which messages are not sent any more, and what took them out (`chat.gone`).

local M = {}

---@param chat CodeCompanion.Chat
---@param item table
---@return string? kind What took it out, nil for what is sent
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

---What is out of the view now, as a whole.
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

---Whether the message is folded away because it is not sent any more.
---@param chat CodeCompanion.Chat
---@param item table
---@return boolean
function M.is_gone(chat, item)
  return M.kind(chat, item) ~= nil or item.message_id ~= nil and chat.gone[item.message_id] ~= nil
end

return M

---What the host has of a draft: it is saved while it is typed, and never lost.

local api = vim.api
local buffer = require("codecompanion.chat.buffer.chat_text")
local host = require("codecompanion.host")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

---What stands between two drafts that become one.
M.BETWEEN = "\n\n"

local SAVE_AFTER_MS = 400

---The host has stored the draft, or could not: it is tried again with the next change, and said once.
---@param draft CodeCompanion.Draft
---@param err? string
local function took(draft, err)
  local is_new = err and err ~= draft.refused
  draft.refused = err
  if err then
    draft.saved = nil
  end
  if is_new and host.status() == "ready" then -- a host that has ended says so itself
    local kept = "Your draft is only in this Neovim, not stored"
    say.line({ ("%s: %s"):format(kept, err), kept .. "." }, severity.WARN)
  end
end

---What is to be kept: the messages that wait in the host or may not have reached it, and what stands in the input.
---@param chat CodeCompanion.Chat
---@return string
local function worth_keeping(chat)
  local draft = chat.draft
  local text = draft.kept or buffer.input_text(chat)
  if vim.v.exiting ~= vim.NIL and text == "" then
    if not draft.shown then
      return draft.saved or ""
    end
    text = draft.shown -- a terminal that was closed: Neovim has closed its buffers, they read as empty
  end
  local texts = {}
  for _, outgoing in ipairs(chat.outgoing) do
    texts[#texts + 1] = (outgoing.queued or outgoing.unsure) and outgoing.text or nil
  end
  texts[#texts + 1] = text ~= "" and text or nil
  return table.concat(texts, M.BETWEEN)
end

---What is stored for a chat that was opened and is not here yet: nothing stands in an input twice.
---@param chat CodeCompanion.Chat
---@param event { draft?: string, beside?: string, read_only?: boolean } chat_opened
---@param has_draft boolean The draft of the chat stands in the input, newer than what is stored
---@return string text To be put in front of the input
function M.take_stored(chat, event, has_draft)
  local texts = vim.tbl_filter(function(text)
    return text ~= nil and text ~= ""
  end, { has_draft and "" or event.draft or "", event.beside or "" })
  local text = table.concat(texts, M.BETWEEN)
  if event.read_only or not has_draft then
    chat.draft.saved = text
  end
  local present = vim.tbl_map(function(outgoing)
    return outgoing.text
  end, chat.outgoing)
  present[#present + 1] = chat.draft.kept or buffer.input_text(chat)
  local blocks = M.BETWEEN .. text .. M.BETWEEN
  for _, here in ipairs(present) do
    local first, last = blocks:find(M.BETWEEN .. here .. M.BETWEEN, 1, true)
    if first and here ~= "" then
      blocks = blocks:sub(1, first - 1) .. blocks:sub(last - #M.BETWEEN + 1)
    end
  end
  return blocks:sub(#M.BETWEEN + 1, -#M.BETWEEN - 1)
end

---Send the draft to the host now, if it changed.
---@param chat CodeCompanion.Chat
function M.save(chat)
  local draft = chat.draft
  if draft.timer then
    draft.timer:stop()
  end
  if chat.attached ~= "yes" or not api.nvim_buf_is_valid(chat.bufnr) then
    return
  end
  local text = worth_keeping(chat)
  if text ~= draft.saved then
    draft.saved = text
    local copy = chat.read_only and chat.nonce or nil -- its owner's draft is another one
    host.request("save_draft", { chat = chat.id, text = text, copy = copy }, function(err)
      took(draft, err)
    end)
  end
end

---Send the draft when nothing more was typed for a moment.
---@param chat CodeCompanion.Chat
function M.save_soon(chat)
  local draft = chat.draft
  draft.timer = draft.timer or assert(vim.uv.new_timer())
  draft.timer:stop()
  draft.timer:start(
    SAVE_AFTER_MS,
    0,
    vim.schedule_wrap(function()
      if api.nvim_buf_is_valid(chat.bufnr) then
        M.save(chat)
      end
    end)
  )
end

---The input is about to be sent. What the host has of it must be exactly these words: storing them as a message takes
---them out of the drafts. Where it has nothing, nothing has to be taken out.
---@param chat CodeCompanion.Chat
function M.sending(chat)
  if chat.draft.saved ~= "" then
    M.save(chat)
  end
end

---Forget the timer; the draft itself was saved.
---@param chat CodeCompanion.Chat
function M.close(chat)
  local timer = chat.draft.timer
  if timer and not timer:is_closing() then
    timer:stop()
    timer:close()
  end
end

return M

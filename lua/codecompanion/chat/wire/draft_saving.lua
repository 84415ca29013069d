---Saves a draft to the host while it is typed, so that it is never lost.

local api = vim.api
local buffer = require("codecompanion.chat.buffer.chat_text")
local host = require("codecompanion.host")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

---Separator between two drafts that are joined.
M.BETWEEN = "\n\n"

local SAVE_AFTER_MS = 400

---Handle the result of saving the draft: a failure is reported once, and the next change tries again.
---@param draft CodeCompanion.Draft
---@param err? string
local function took(draft, err)
  local is_new = err and err ~= draft.refused
  draft.refused = err
  if err then
    draft.saved = nil
  end
  if is_new and host.status() == "ready" then -- a host that has exited reports itself
    local kept = "Your draft was not saved and exists only in this Neovim"
    say.line({ ("%s: %s"):format(kept, err), kept .. "." }, severity.WARN)
  end
end

---Return the text to save: messages that wait in the host or may not have reached it, and the text of the input.
---@param chat CodeCompanion.Chat
---@return string
local function worth_keeping(chat)
  local draft = chat.draft
  local text = draft.kept or buffer.input_text(chat)
  if vim.v.exiting ~= vim.NIL and text == "" then
    if not draft.shown then
      return draft.saved or ""
    end
    text = draft.shown -- a terminal was closed: Neovim has closed its buffers, which read as empty
  end
  local texts = {}
  for _, outgoing in ipairs(chat.outgoing) do
    texts[#texts + 1] = (outgoing.queued or outgoing.unsure) and outgoing.text or nil
  end
  texts[#texts + 1] = text ~= "" and text or nil
  return table.concat(texts, M.BETWEEN)
end

---Return the stored draft of a newly opened chat, without text that the input already has.
---@param chat CodeCompanion.Chat
---@param event { draft?: string, beside?: string, read_only?: boolean } chat_opened event
---@param has_draft boolean The input contains the chat's draft, which is newer than the stored one
---@return string text Text to put before that of the input
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

---Send the draft to the host now, if it has changed.
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
    local copy = chat.read_only and chat.nonce or nil -- the draft of its owner is a different one
    host.request("save_draft", { chat = chat.id, text = text, copy = copy }, function(err)
      took(draft, err)
    end)
  end
end

---Send the draft to the host, debounced.
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

---Prepare to send the input. The host's draft must equal this text, because storing it as a message removes that draft.
---If the host has no draft, there is nothing to remove.
---@param chat CodeCompanion.Chat
function M.sending(chat)
  if chat.draft.saved ~= "" then
    M.save(chat)
  end
end

---Stop the timer; the draft itself was saved.
---@param chat CodeCompanion.Chat
function M.close(chat)
  local timer = chat.draft.timer
  if timer and not timer:is_closing() then
    timer:stop()
    timer:close()
  end
end

return M

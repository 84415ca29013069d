---`/buffer [name or number]`: attach what a buffer holds now, unsaved changes included.

local api = vim.api

---@return integer[]
local function candidates()
  return vim.tbl_filter(function(bufnr)
    return vim.bo[bufnr].buflisted and vim.bo[bufnr].buftype == "" and api.nvim_buf_get_name(bufnr) ~= ""
  end, api.nvim_list_bufs())
end

---@param bufnr integer
---@return string
local function name_of(bufnr)
  return vim.fn.fnamemodify(api.nvim_buf_get_name(bufnr), ":.")
end

---@param chat CodeCompanion.Chat
---@param bufnr integer
local function attach(chat, bufnr)
  vim.fn.bufload(bufnr)
  require("codecompanion.chat.session").notify(chat, "attach", {
    kind = "buffer",
    path = api.nvim_buf_get_name(bufnr),
    text = table.concat(api.nvim_buf_get_lines(bufnr, 0, -1, false), "\n") .. "\n",
  })
end

---@type CodeCompanion.SlashCommand
return {
  name = "buffer",
  description = "Attach a buffer, unsaved changes included",
  argument = "[name or number]",
  complete = function(lead)
    return vim.tbl_filter(function(name)
      return name:find(lead, 1, true) ~= nil
    end, vim.tbl_map(name_of, candidates()))
  end,
  run = function(chat, argument)
    local buffers = candidates()
    for _, bufnr in ipairs(buffers) do
      if argument == tostring(bufnr) or argument == name_of(bufnr) or argument == api.nvim_buf_get_name(bufnr) then
        return attach(chat, bufnr)
      end
    end
    if argument ~= "" or #buffers == 0 then
      local text = argument ~= "" and ("There is no buffer %s."):format(argument) or "No buffer with a file is open."
      return require("codecompanion.slash").say(chat, text)
    end
    local options = { prompt = "Attach a buffer", kind = "codecompanion.buffer", format_item = name_of }
    vim.ui.select(buffers, options, function(bufnr)
      if bufnr then
        attach(chat, bufnr)
      end
    end)
  end,
}

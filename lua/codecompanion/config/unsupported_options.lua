---Lists keys of codecompanion.nvim that do not exist here, and former options. They are reported once, together, and do
---not count as mistakes. Renamed keys are in `codecompanion.config.renamed_options`.
---
---`*` matches any one part of a key path. A hint names the replacement; true means there is none.

---@type table<string, string|true>
local KEYS = {
  ["constants"] = true,
  ["extensions"] = true,
  ["mcp.claude_desktop"] = "copy the servers to `mcp.servers`, or to the project's `.mcp.json`",
  ["mcp.opts"] = "the options of all servers are in `mcp`",
  ["mcp.servers.*.register_roots_list_changes"] = "the workspace is the root",
  ["mcp.servers.*.server_instructions"] = true,
  ["mcp.servers.*.tool_defaults"] = true,
  ["adapters.acp"] = true,
  ["adapters.non_llms"] = true,
  ["adapters.opts"] = "options of all adapters are in `adapters.http.opts`",
  ["adapters.http.opts.show_defaults"] = true,
  ["adapters.http.opts.allow_insecure"] = "certificates are always verified",
  ["adapters.http.opts.cache_models_for"] = true,
  ["adapters.http.opts.show_model_choices"] = true,
  ["adapters.http.opts.show_presets"] = true,
  ["ignore_warnings"] = true,
  ["interactions.agent"] = true,
  ["interactions.background"] = true,
  ["interactions.cli"] = true,
  ["interactions.cmd.opts"] = true,
  ["interactions.code_review"] = true,
  ["interactions.inline.opts"] = true,
  ["interactions.inline.editor_context"] = true,
  ["interactions.inline.variables"] = true,
  ["interactions.inline.keymaps.*.callback"] = true,
  ["interactions.inline.keymaps.*.description"] = true,
  ["interactions.inline.keymaps.*.index"] = true,
  ["interactions.inline.keymaps.*.opts"] = true,
  ["interactions.opts"] = true,
  ["interactions.workflow"] = true,
  ["interactions.shared.keymaps.*.callback"] = true,
  ["interactions.shared.keymaps.*.description"] = true,
  ["interactions.shared.keymaps.*.index"] = true,
  ["interactions.shared.keymaps.*.opts"] = true,
  ["interactions.chat.agents"] = true,
  ["interactions.chat.callbacks"] = true,
  ["interactions.chat.slash_commands.opts"] = true,
  ["interactions.chat.slash_commands.*.keymaps"] = true,
  ["interactions.chat.slash_commands.*.opts.*"] = true,
  ["interactions.chat.slash_commands.*.path"] = "load the file, and set `callback` to its function",
  ["interactions.chat.editor_context.opts"] = true,
  ["interactions.chat.editor_context.*.path"] = true,
  ["interactions.chat.editor_context.*.opts.default_params"] = true,
  ["interactions.chat.editor_context.*.opts.replacement_message"] = true,
  ["interactions.chat.editor_context.code_review"] = true,
  ["interactions.chat.opts.acp_timeout_response"] = true,
  ["interactions.chat.opts.blank_prompt"] = true,
  ["interactions.chat.opts.debounce"] = true,
  ["interactions.chat.opts.goto_file_action"] = true,
  ["interactions.chat.opts.register"] = true,
  ["interactions.chat.opts.wait_timeout"] = "approvals never time out",
  ["interactions.chat.opts.yank_jump_delay_ms"] = true,
  ["interactions.chat.keymaps._btw"] = "messages sent while a reply is running are queued",
  ["interactions.chat.keymaps._acp_allow_always"] = true,
  ["interactions.chat.keymaps._acp_allow_once"] = true,
  ["interactions.chat.keymaps._acp_reject_always"] = true,
  ["interactions.chat.keymaps._acp_reject_once"] = true,
  ["interactions.chat.keymaps.buffer_sync_all"] = true,
  ["interactions.chat.keymaps.buffer_sync_diff"] = true,
  ["interactions.chat.keymaps.clear_approvals"] = true,
  ["interactions.chat.keymaps.copilot_stats"] = true,
  ["interactions.chat.keymaps.fold_code"] = "use `toggle_fold`",
  ["interactions.chat.keymaps.memory"] = "to detach a rule, delete its line in the context block",
  ["interactions.chat.keymaps.pin"] = true,
  ["interactions.chat.keymaps.rules"] = "to detach a rule, delete its line in the context block",
  ["interactions.chat.keymaps.super_diff"] = true,
  ["interactions.chat.keymaps.watch"] = true,
  ["interactions.chat.keymaps.*.condition"] = true,
  ["interactions.chat.keymaps.*.hide"] = true,
  ["interactions.chat.keymaps.*.index"] = true,
  ["interactions.chat.tools.ask_questions"] = true,
  ["interactions.chat.tools.fetch_webpage"] = true,
  ["interactions.chat.tools.get_changed_files"] = true,
  ["interactions.chat.tools.groups.agent"] = "use the group `full`",
  ["interactions.chat.tools.groups.full_stack_dev"] = "use the group `full`",
  ["interactions.chat.tools.groups.*.prompt"] = true,
  ["interactions.chat.tools.list_code_usages"] = true,
  ["interactions.chat.tools.next_edit_suggestion"] = true,
  ["interactions.chat.tools.web_search"] = true,
  ["interactions.chat.tools.opts.folds"] = "use `display.chat.fold_tools`",
  ["interactions.chat.tools.opts.notify_on_approval"] = true,
  ["interactions.chat.tools.opts.system_prompt"] = true,
  ["interactions.chat.tools.opts.tool_replacement_message"] = true,
  ["interactions.chat.tools.*.callback"] = "a built-in tool has this name; choose another one",
  ["interactions.chat.tools.*.description"] = true,
  ["interactions.chat.tools.*.path"] = "load the file, and set `callback` to its result",
  ["interactions.chat.tools.*.python"] = "a built-in tool has this name; choose another one",
  ["interactions.chat.tools.*.visible"] = true,
  ["interactions.chat.tools.*.opts.file_size_limit_mb"] = true,
  ["interactions.chat.tools.*.opts.max_lines"] = true,
  ["interactions.chat.tools.*.opts.max_results"] = true,
  ["interactions.chat.tools.*.opts.require_cmd_approval"] = "commands are always approved one by one",
  ["interactions.chat.tools.*.opts.require_confirmation_after"] = "the change is shown before it is made",
  ["interactions.chat.tools.*.opts.respect_gitignore"] = "searches leave out what git ignores",
  ["interactions.chat.tools.*.opts.user_confirmation"] = "the change is shown before it is made",
  ["interactions.chat.tools.*.opts.whitelist"] = true,
  ["rules.parsers"] = "the parsers are `none` and `claude`",
  ["rules.*.is_default"] = true,
  ["rules.*.is_preset"] = true,
  ["rules.opts.show_defaults"] = "set a group to false to hide it",
  ["rules.opts.show_presets"] = "set a group to false to hide it",
  ["rules.opts.chat.autoload_groups_in_prompt_library"] = true,
  ["rules.opts.chat.default_params"] = true,
  ["display.action_palette"] = true,
  ["display.cli"] = true,
  ["display.diff"] = true,
  ["display.icons"] = true,
  ["display.inline"] = true,
  ["display.input"] = true,
  ["display.chat.child_window"] = "use `display.chat.window`",
  ["display.chat.debug_window"] = true,
  ["display.chat.diff_window"] = true,
  ["display.chat.floating_window"] = "use `display.chat.window`",
  ["display.chat.icons"] = true,
  ["display.chat.show_settings"] = true,
  ["display.chat.show_tools_processing"] = true,
  ["display.chat.window.pertab"] = true,
  ["display.chat.window.sticky"] = true,
  ["display.chat.treesitter_max_lines"] = "2,000 lines is the limit of every chat",
  ["opts.job_start_delay"] = true,
  ["opts.submit_delay"] = true,
  ["opts.triggers"] = true,
  ["python.module_cache"] = "byte code is always cached",
}

local AUTO_SUBMIT = {
  when = function(value)
    return value ~= true
  end,
  text = "not supported: tool results are sent to the model immediately. Remove it; to be asked before a tool runs,"
    .. " set its `require_approval_before` = true",
}

---Unsupported keys of codecompanion.nvim that restrict which data is sent or which actions run without asking. They
---count as mistakes, because relying on them would be unsafe. `when` limits this to some values.
---@type table<string, { when?: (fun(value: any): boolean), text: string }>
local REFUSED = {
  ["interactions.chat.opts.prompt_decorator"] = {
    text = "not supported: messages are sent as you write them. Remove it, or change the text in a slash command of"
      .. " your own",
  },
  ["interactions.chat.tools.*.opts.judge_in_yolo_mode"] = {
    when = function(value)
      return value ~= false
    end,
    text = "not supported: no model judges calls in YOLO mode. Remove it and set `allowed_in_yolo_mode` = false, so"
      .. " that the tool always asks",
  },
  ["interactions.chat.tools.opts.auto_submit_errors"] = AUTO_SUBMIT,
  ["interactions.chat.tools.opts.auto_submit_success"] = AUTO_SUBMIT,
  ["mcp.servers.*.roots"] = {
    text = "not supported: the server receives the workspace as its root. Remove it, and limit the server with its own"
      .. " arguments",
  },
  ["opts.per_project_config"] = {
    when = function(value)
      return type(value) ~= "table" or next(value.files or {}) ~= nil or next(value.paths or {}) ~= nil
    end,
    text = "not supported: project-specific configuration is not read. Remove it; to send no code from some projects,"
      .. " make `opts.send_code` a function",
  },
}

local M = {}

---Return the entry of `patterns` that matches a key path.
---@generic T
---@param patterns table<string, T>
---@param path string[]
---@return T?
local function matching(patterns, path)
  local exact = patterns[table.concat(path, ".")]
  if exact then
    return exact
  end
  for pattern, value in pairs(patterns) do
    if pattern:find("*", 1, true) then
      local parts = vim.split(pattern, ".", { plain = true })
      local fits = #parts == #path
      for index, part in ipairs(parts) do
        fits = fits and (part == "*" or part == path[index])
      end
      if fits then
        return value
      end
    end
  end
end

---Return why a key is refused with this value.
---@param path string[]
---@param value any
---@return string?
function M.refusal(path, value)
  local refused = matching(REFUSED, path)
  if refused and (not refused.when or refused.when(value)) then
    return refused.text
  end
end

---Return whether a key belongs to codecompanion.nvim and has no effect here.
---@param path string[] Parts of the key path
---@return string|boolean hint The replacement, true if there is none, or false if it is not a key of codecompanion.nvim
function M.hint(path)
  return matching(KEYS, path) or matching(REFUSED, path) ~= nil
end

return M

---Keys of codecompanion.nvim that do not exist here, so that an error can say so instead of guessing at a typing error.
---
---`*` stands for any one part of a key path. A hint says what to use instead; true means there is nothing.

---@type table<string, string|true>
local KEYS = {
  ["strategies"] = "use `interactions`",
  ["memory"] = "use `rules`",
  ["constants"] = true,
  ["extensions"] = true,
  ["mcp"] = true,
  ["prompt_library"] = true,
  ["adapters.acp"] = true,
  ["adapters.opts"] = "options of all adapters are in `adapters.http.opts`",
  ["adapters.http.opts.allow_insecure"] = true,
  ["adapters.http.opts.cache_models_for"] = true,
  ["adapters.http.opts.show_model_choices"] = true,
  ["adapters.http.opts.show_presets"] = true,
  ["interactions.background"] = true,
  ["interactions.cli"] = true,
  ["interactions.cmd"] = true,
  ["interactions.code_review"] = true,
  ["interactions.inline"] = true,
  ["interactions.opts"] = true,
  ["interactions.shared"] = "the keys of approvals are in `interactions.chat.keymaps`",
  ["interactions.chat.editor_context"] = true,
  ["interactions.chat.slash_commands"] = true,
  ["interactions.chat.variables"] = true,
  ["interactions.chat.opts.blank_prompt"] = true,
  ["interactions.chat.opts.completion_provider"] = true,
  ["interactions.chat.opts.debounce"] = true,
  ["interactions.chat.opts.goto_file_action"] = true,
  ["interactions.chat.opts.prompt_decorator"] = true,
  ["interactions.chat.opts.register"] = true,
  ["interactions.chat.opts.wait_timeout"] = "approvals wait as long as you like",
  ["interactions.chat.opts.yank_jump_delay_ms"] = true,
  ["interactions.chat.keymaps._btw"] = "send while a reply is running: it is queued",
  ["interactions.chat.keymaps.buffer_sync_all"] = true,
  ["interactions.chat.keymaps.buffer_sync_diff"] = true,
  ["interactions.chat.keymaps.clear_approvals"] = true,
  ["interactions.chat.keymaps.copilot_stats"] = true,
  ["interactions.chat.keymaps.fold_code"] = "use `toggle_fold`",
  ["interactions.chat.keymaps.rules"] = "delete the line of a rule in the context block",
  ["interactions.chat.keymaps.*.hide"] = true,
  ["interactions.chat.keymaps.*.index"] = true,
  ["interactions.chat.tools.ask_questions"] = true,
  ["interactions.chat.tools.fetch_webpage"] = true,
  ["interactions.chat.tools.get_changed_files"] = true,
  ["interactions.chat.tools.groups"] = "every enabled tool is offered to the model",
  ["interactions.chat.tools.web_search"] = true,
  ["interactions.chat.tools.opts.auto_submit_errors"] = true,
  ["interactions.chat.tools.opts.auto_submit_success"] = true,
  ["interactions.chat.tools.opts.default_tools"] = "every enabled tool is offered to the model",
  ["interactions.chat.tools.opts.folds"] = "use `display.chat.fold_tools`",
  ["interactions.chat.tools.opts.notify_on_approval"] = true,
  ["interactions.chat.tools.opts.system_prompt"] = true,
  ["interactions.chat.tools.opts.tool_replacement_message"] = true,
  ["interactions.chat.tools.*.callback"] = true,
  ["interactions.chat.tools.*.description"] = true,
  ["interactions.chat.tools.*.path"] = true,
  ["interactions.chat.tools.*.visible"] = true,
  ["interactions.chat.tools.*.opts.file_size_limit_mb"] = true,
  ["interactions.chat.tools.*.opts.judge_in_yolo_mode"] = true,
  ["interactions.chat.tools.*.opts.max_lines"] = true,
  ["interactions.chat.tools.*.opts.max_results"] = true,
  ["interactions.chat.tools.*.opts.require_cmd_approval"] = "commands are always approved one by one",
  ["interactions.chat.tools.*.opts.require_confirmation_after"] = "the change is shown before it is made",
  ["interactions.chat.tools.*.opts.respect_gitignore"] = true,
  ["interactions.chat.tools.*.opts.whitelist"] = true,
  ["rules.parsers"] = "the parsers are `none` and `claude`",
  ["rules.*.is_preset"] = true,
  ["rules.opts.show_presets"] = "set a group to false to hide it",
  ["rules.opts.chat.autoload_groups_in_prompt_library"] = true,
  ["rules.opts.chat.condition"] = "use `rules.opts.chat.enabled`",
  ["rules.opts.chat.default_params"] = true,
  ["display.action_palette"] = true,
  ["display.cli"] = true,
  ["display.diff"] = true,
  ["display.icons"] = true,
  ["display.inline"] = true,
  ["display.input"] = true,
  ["display.chat.floating_window"] = "use `display.chat.window`",
  ["display.chat.icons"] = true,
  ["display.chat.show_references"] = "use `display.chat.show_context`",
  ["display.chat.show_settings"] = true,
  ["display.chat.show_tools_processing"] = true,
  ["display.chat.window.pertab"] = true,
  ["display.chat.window.sticky"] = true,
  ["opts.per_project_config"] = true,
  ["opts.send_code"] = true,
  ["opts.submit_delay"] = true,
  ["opts.triggers"] = true,
}

local M = {}

---What to say about a key of codecompanion.nvim, nil when the key is none.
---@param path string[] Parts of the key path
---@return string?
function M.explain(path)
  local hint = KEYS[table.concat(path, ".")]
  for position = 1, #path do
    if hint then
      break
    end
    local pattern = vim.list_extend({}, path)
    pattern[position] = "*"
    hint = KEYS[table.concat(pattern, ".")]
  end
  if not hint then
    return nil
  end
  local said = "belongs to codecompanion.nvim, not to this plugin"
  return type(hint) == "string" and ("%s; %s"):format(said, hint) or said
end

return M

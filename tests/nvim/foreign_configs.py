"""Configurations of codecompanion.nvim users, based on its documentation for versions 15, 17 and 19.

Written for these tests; `NOTHING` lists the keys without a meaning here, `TAKEN` the resulting settings.
"""

from __future__ import annotations

from typing import Any

V15 = """{
  strategies = {
    chat = {
      adapter = "anthropic",
      roles = { user = "You" },
      keymaps = {
        send = { modes = { n = { "<CR>", "<C-s>" }, i = "<C-s>" }, index = 2, callback = "keymaps.send" },
        close = { modes = { n = "<C-q>", i = "<C-q>" }, index = 3, callback = "keymaps.close" },
        auto_tool_mode = { modes = { n = "gta" } },
      },
      slash_commands = { buffer = { opts = { provider = "telescope" } } },
      agents = { tools = { rag = {} } },
    },
    inline = { adapter = "anthropic" },
    agent = { adapter = "anthropic" },
  },
  adapters = {
    anthropic = function()
      return require("codecompanion.adapters").extend("anthropic", { env = { api_key = "cmd:pass show anthropic" } })
    end,
    opts = { show_defaults = false, proxy = "socks5://127.0.0.1:9999" },
  },
  display = {
    action_palette = { provider = "default" },
    diff = { provider = "mini_diff" },
    chat = { show_references = false, show_settings = true, window = { layout = "vertical", width = 0.4 } },
  },
  opts = { log_level = "DEBUG", system_prompt = "Be brief.", send_code = true },
}"""

V17 = """{
  strategies = {
    chat = {
      adapter = { name = "openai", model = "gpt-4.1" },
      tools = {
        groups = { full_stack_dev = { opts = { collapse_tools = false } } },
        opts = { auto_submit_errors = true, default_tools = { "read_file" }, folds = { enabled = false } },
        cmd_runner = { opts = { requires_approval = false } },
        insert_edit_into_file = { opts = { requires_approval = true, user_confirmation = false } },
        next_edit_suggestion = { opts = {} },
      },
      variables = { buffer = { opts = { default_params = "watch" } } },
      opts = { completion_provider = "blink", goto_file_action = "tabnew" },
    },
    inline = { adapter = "openai", keymaps = { accept_change = { modes = { n = "ga" } } } },
    cmd = { adapter = "openai" },
  },
  adapters = {
    http = {
      openai = function()
        return require("codecompanion.adapters").extend("openai", { schema = { model = { default = "gpt-4.1" } } })
      end,
    },
    acp = { gemini_cli = "gemini_cli" },
  },
  memory = {
    project = { description = "Project", files = { "CLAUDE.md", "docs/*.md" }, parser = "claude" },
    opts = { chat = { enabled = true, default_memory = { "project" } }, show_defaults = false },
  },
  prompt_library = {
    ["Docs"] = { strategy = "chat", description = "Docs", prompts = { { role = "user", content = "Hi" } } },
  },
  extensions = { mcphub = { callback = "mcphub.extensions.codecompanion", opts = { make_vars = true } } },
  display = { chat = { child_window = { width = 100 }, window = { position = "right", opts = { number = false } } } },
  opts = { job_start_delay = 1500 },
}"""

V19 = """{
  interactions = {
    chat = {
      adapter = "anthropic",
      opts = {
        system_prompt = function(ctx) return ctx.default_system_prompt .. "\\nSpeak plainly." end,
        context_management = { compaction = { trigger = 0.8 } },
        yank_jump_delay_ms = 200,
      },
      tools = {
        run_command = { opts = { require_approval_before = true, require_cmd_approval = true } },
        web_search = { opts = { adapter = "tavily" } },
        opts = { notify_on_approval = { enabled = false } },
      },
      editor_context = { buffer = { opts = { default_params = "diff" } } },
      slash_commands = { opts = { acp = { enabled = false } } },
    },
    background = { chat = { opts = { enabled = true } } },
    cli = { agent = "claude_code" },
    shared = { keymaps = { accept_change = { modes = { n = "gda" } } } },
  },
  adapters = {
    http = { ollama = { env = { url = "http://127.0.0.1:11434" } }, opts = { cache_models_for = 600 } },
    acp = { extend = { codex = { env = {} } } },
    opts = { cmd_timeout = 5000 },
  },
  rules = { opts = { chat = { autoload = "default" }, show_presets = true } },
  mcp = { servers = {} },
  display = { chat = { floating_window = { width = 0.9 }, window = { sticky = true, width = 80 } } },
}"""

ALL = {"15": V15, "17": V17, "19": V19}

NOTHING: dict[str, set[str]] = {
    "15": {
        *("adapters.opts", "display.action_palette", "display.diff", "display.chat.show_settings"),
        *("interactions.agent", "interactions.chat.agents"),
        "interactions.chat.slash_commands.buffer.opts.provider",
        *("interactions.chat.keymaps.close.index", "interactions.chat.keymaps.send.index"),
    },
    "17": {
        *("adapters.acp", "extensions", "opts.job_start_delay", "display.chat.child_window"),
        *("interactions.chat.editor_context.buffer.opts.default_params", "rules.opts.show_defaults"),
        "interactions.chat.opts.goto_file_action",
        *("interactions.chat.tools.groups.full_stack_dev", "interactions.chat.tools.next_edit_suggestion"),
        "interactions.chat.tools.opts.auto_submit_errors",
        "interactions.chat.tools.insert_edit.opts.user_confirmation",
    },
    "19": {
        *("adapters.acp", "adapters.opts", "adapters.http.opts.cache_models_for", "rules.opts.show_presets"),
        *("interactions.background", "interactions.cli", "display.chat.floating_window"),
        *(
            "interactions.chat.editor_context.buffer.opts.default_params",
            "interactions.chat.slash_commands.opts",
            "display.chat.window.sticky",
        ),
        *("interactions.chat.opts.yank_jump_delay_ms", "interactions.chat.tools.web_search"),
        *("interactions.chat.tools.opts.notify_on_approval",),
        "interactions.chat.tools.run_command.opts.require_cmd_approval",
    },
}

TAKEN: dict[str, dict[str, Any]] = {
    "15": {
        "interactions.chat.adapter": "anthropic",
        "interactions.chat.roles.user": "You",
        "interactions.chat.keymaps.close.modes.n": "<C-q>",
        "interactions.chat.keymaps.yolo_mode.modes.n": "gta",
        "interactions.chat.opts.system_prompt": "Be brief.",
        "adapters.http.opts.proxy": "socks5://127.0.0.1:9999",
        "display.chat.show_context": False,
        "display.chat.window.width": 0.4,
        "opts.log_level": "DEBUG",
    },
    "17": {
        "interactions.chat.adapter.model": "gpt-4.1",
        "interactions.chat.tools.run_command.opts.require_approval_before": False,
        "interactions.chat.tools.insert_edit.opts.require_approval_before": True,
        "display.chat.fold_tools": False,
        "display.chat.window.position": "right",
        "rules.project.files": [{"path": "CLAUDE.md"}, {"path": "docs/*.md"}],
        "rules.opts.chat.autoload": ["project"],
    },
    "19": {
        "interactions.chat.adapter": "anthropic",
        "interactions.chat.opts.context_management.compaction.trigger": 0.8,
        "interactions.chat.tools.run_command.opts.require_approval_before": True,
        "display.chat.window.width": 80,
    },
}

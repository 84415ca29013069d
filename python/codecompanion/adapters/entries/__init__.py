"""Converts entries of `adapters.http`, including codecompanion.nvim's shapes, to `AdapterSettings`.

The editor merges the layers of an entry and evaluates its functions (`lua/codecompanion/adapters/adapter_entry.lua`);
this module interprets them. The built-in entries are `codecompanion/builtin_adapters.json`, based on each endpoint's
own documentation (2026-11; at `documented_at`). Undocumented facts are learned from the endpoint's refusals
(`openai_chat/refusals.py`):

* `limits_path` is where a local server reports the context window that a request really gets; with the model's own
  figure the server would truncate prompts silently. Ollama and LM Studio report it once the model is loaded. Mistral's
  names that end in `latest` are in its own list but not in any table of windows.
* `send_reasoning = "tool_turns"`: the reasoning of turns that called tools is sent back. DeepSeek and Moonshot refuse
  requests without it; templates of local models use the parts they need and drop the rest.
* `one_system_message`: Gemini keeps one instruction apart from the messages; Mistral's format and the templates of
  local models move a system message to the front or refuse it.
* `alternate_roles`: the templates of open models (Mistral's, Gemma's) raise an error for two user messages in a row.
* Mistral reports usage unconditionally, refuses `max_completion_tokens`, and accepts only call ids of nine letters
  and digits.
* `address_variable` names the variable that Ollama's own command line reads; `entry` is a layer below the user's.
* Groq and Cerebras have `max_completion_tokens` (Groq calls the other name deprecated) and refuse `logit_bias`, and
  `logprobs` or `parallel_tool_calls`, which are never sent by default. Groq's list includes windows; Cerebras's does
  not.
* `send_reasoning` of Fireworks and Z.AI sends reasoning in the field that contained it: both document this for turns
  that called tools. Groq, Together, Cerebras and Nebius do not document a field for it, so none is sent.
* Z.AI always reports usage, documents no `stream_options`, and has no list of its models: ours is used instead.
* MiniMax writes reasoning into the answer as `<think>` unless the request asks to split it; its `reasoning_details` are
  then sent back unchanged. Its `base_resp` is an error with status 200 (`errors/error_map.py`).
* Nebius includes windows in its list if a verbose list is requested.
* GitHub Models is omitted: GitHub closed it on 30 July 2026.
"""

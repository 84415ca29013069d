"""Converts entries of `adapters.http`, including codecompanion.nvim's shapes, to `AdapterSettings`.

The editor merges the layers of an entry and evaluates its functions (`lua/codecompanion/adapters/adapter_entry.lua`);
this module interprets them. The built-in entries are `codecompanion/builtin_adapters.json`, read from each endpoint's
own documentation (2026-11; at `documented_at`). Undocumented facts are learned from the endpoint's refusals
(`openai_chat/refusals.py`):

* `limits_path` is where a local server reports the context window that a request really gets; with the model's own
  figure the server would truncate prompts silently. Ollama and LM Studio know it once the model is loaded. Mistral's
  names that end in `latest` are in its own list but in no table of windows.
* `send_reasoning = "tool_turns"`: the reasoning of turns that called tools is sent back. DeepSeek and Moonshot refuse
  requests without it; templates of local models use what they need and drop the rest.
* `one_system_message`: Gemini keeps one instruction apart from the messages; Mistral's format and the templates of
  local models move a system message to the front or refuse it.
* `alternate_roles`: the templates of open models (Mistral's, Gemma's) raise an error for two user messages in a row.
* Mistral reports usage without being asked, refuses `max_completion_tokens`, and accepts only call ids of nine letters
  and digits.
* `address_variable` names the variable that Ollama's own command line reads; `entry` is a layer below the user's.
* Groq and Cerebras have `max_completion_tokens` (Groq calls the other name deprecated) and refuse `logit_bias`, and
  `logprobs` or `parallel_tool_calls`, never sent by default. Groq's list includes windows; Cerebras's does not.
* `send_reasoning` of Fireworks and Z.AI, in the field it came in: both document it for turns that called tools.
  Groq, Together, Cerebras and Nebius document no field to send it back in; none is sent.
* Z.AI always reports usage, documents no `stream_options`, and has no list of its models: ours is used instead.
* MiniMax writes reasoning into the answer as `<think>` unless the request asks to split it; its `reasoning_details` are
  then sent back unchanged. Its `base_resp` is an error with status 200 (`errors/error_map.py`).
* Nebius includes windows in its list if a verbose one is requested.
* GitHub Models is not here: GitHub closed it on 30 July 2026.
"""

"""A ChatGPT plan: “Sign in with ChatGPT” for open-source programs, its tokens, its models, requests that it pays for.

From OpenAI's pages below https://developers.openai.com/siwc/token-sharing-open-source (sign-in, profiles-and-sessions,
models-and-inference, token-reference, errors-and-recovery, preview-limitations) and /siwc/ui-ux-guidelines, as of
November 2026. It has not been tried with an account. Imported only where the adapter is used.
"""

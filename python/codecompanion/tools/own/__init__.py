"""The user's own tools, in Lua (run by the editor) and in Python (run here)."""

"""Tools of the user's own, in Lua (run by the editor) and in Python (run here)."""

"""The fake Messages endpoint."""

"""Files of a folder that wait for the user's trust."""

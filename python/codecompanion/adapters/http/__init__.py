"""One provider endpoint over HTTP: the client, the limits on its time, the reading of its replies."""

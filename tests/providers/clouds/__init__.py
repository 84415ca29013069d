"""Loopback servers of clouds: Bedrock, Vertex AI and Azure, which check who signed a request before they answer it."""

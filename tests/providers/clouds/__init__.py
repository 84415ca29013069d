"""Loopback servers of clouds: Bedrock, Vertex AI and Azure, which verify who signed a request before answering."""

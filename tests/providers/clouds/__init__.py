"""Loopback cloud servers: Bedrock, Vertex AI and Azure, which verify the signature or token before answering."""

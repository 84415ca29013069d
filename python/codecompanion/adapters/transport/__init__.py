"""Sends rendered bodies to an endpoint and returns responses, through httpx2 or an official client."""

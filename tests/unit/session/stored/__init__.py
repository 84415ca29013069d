"""Databases written by earlier versions, with the blocks shown and the requests sent by those versions."""

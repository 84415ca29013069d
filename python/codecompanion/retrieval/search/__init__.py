"""Searches the code of a project as the document describes it: tiers, fusion, results (R-227 … R-238)."""

"""Answers about GPUs: code for them, their drivers, and what they cannot do."""

"""Answers to builds and installations that failed, one module a subject."""

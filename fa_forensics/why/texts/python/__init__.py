"""Answers about Python's side: modules, interfaces that changed, words of packages."""

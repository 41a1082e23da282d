"""Views of one report: `terminal` for people, `json` for programs.

Renderers show what a report says. They read no file and judge nothing.
"""

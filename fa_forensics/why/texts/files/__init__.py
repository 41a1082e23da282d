"""Answers about the extension's file itself: damaged, refused by the loader, not there."""

"""Commands of their own file; each imports what it needs when it is called."""

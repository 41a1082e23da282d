"""Report against report: only what differs, and whether it can change what is computed."""

"""What the bytes say: true on any machine, whatever is installed there."""

"""Names that torch owns: their life over the releases, their spelling, what their absence means."""

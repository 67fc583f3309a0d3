"""Flag plumbing of the binaries, and recipes (absl flagfiles)."""

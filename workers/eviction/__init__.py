"""Local storage of pods held against its limits."""

"""State of pods as observed, what follows from it, and policies that master and workers both decide by. Pure."""

"""Frames, packets and channels between processes, and a child's boot context."""

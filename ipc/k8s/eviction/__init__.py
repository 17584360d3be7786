"""Eviction by pressure on the node: signals, thresholds, and which of them are met by what was observed. Pure."""

"""A pod's log directory, CRI's line format, garbage, and the messages that containers leave when they end."""

"""Streams over WebSockets: exec, attach, port-forward."""

"""Streams over WebSockets and SPDY: exec, attach, port-forward."""

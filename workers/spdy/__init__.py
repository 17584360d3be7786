"""SPDY/3.1 without I/O: frames, header blocks, and the streams of one connection. Events in, frames out."""

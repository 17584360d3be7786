"""Patches of objects that clients send: JSON merge, JSON patch, and which of them a request asks for. Pure."""

"""Texts: made safe for people, formatted and read as Go does it, JSON among them. Pure."""

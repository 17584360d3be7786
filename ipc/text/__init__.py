"""Texts: made safe for people, formatted and read as Go does it. Pure."""

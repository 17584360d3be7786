"""Texts: made safe for people, without the values of Secrets, formatted as Go formats them. Pure."""

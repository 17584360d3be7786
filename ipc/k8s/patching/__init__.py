"""Patches of API objects as data: strategic merge, JSON merge and JSON patch, and how two objects differ. Pure."""

"""Runs lifecycle handlers: postStart and preStop hooks by exec, HTTP or sleep."""

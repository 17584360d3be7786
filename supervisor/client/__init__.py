"""Clients of the admin socket: HTTP, WebSocket, list and watch."""

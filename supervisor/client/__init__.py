"""Clients of the admin socket: HTTP, WebSocket, list and watch; and the one of a cluster that a host joins."""

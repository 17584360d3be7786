"""Handlers of what is wanted: pods, their admission and resizes, their objects and volumes, and orphans."""

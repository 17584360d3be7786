"""Pods of the cluster on this node: those that the server states, their statuses back to it, mirrors of static pods."""

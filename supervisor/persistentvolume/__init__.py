"""Binds claims to PersistentVolumes, both stated by documents (pkg/controller/volume/persistentvolume)."""

"""Child processes: specs, pool, links, zygote, Podman's service, notification of systemd."""

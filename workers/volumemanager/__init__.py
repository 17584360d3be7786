"""Sets a pod's volumes up and down, and makes each container's mounts of them. Layout as upstream's:
`<pods_dir>/<uid>/volumes/kubernetes.io~<plugin>/<name>`; what must not reach a disk has the same layout below
`memory_dir`."""

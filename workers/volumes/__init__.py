"""A pod's volumes: what lies where on the host, and what of it each container sees.

``set_up`` makes everything that a pod's volumes need, again with every sync, and says what came out (``mounted``);
``mounts`` makes a container's mounts of that; ``tear_down`` takes all of it away. The layout is upstream's:
``<pods_dir>/<uid>/volumes/kubernetes.io~<plugin>/<name>`` (pkg/kubelet/kubelet_getters.go, getPodVolumeDir); what must
not reach a disk has the same layout below ``memory_dir``.
"""

"""Sources of desired pods: manifest files, `rootlet apply`, a URL, a cluster (pkg/kubelet/config).

``documents`` and ``objects`` (pure) make pods of bytes and merge those of all sources; ``directory`` reads a manifest
directory or a single file, ``watch`` notices changes, ``applied`` keeps what `rootlet apply` was given. The rules that
all of them keep:

- Nothing is deleted on partial knowledge. A directory that cannot be listed makes a snapshot that is not *complete*: it
  removes nothing and does not make its source ready. A file with any error is *held*: its good documents count, and the
  pods that it stated before and does not state readably now stay as they are.
- A directory that became another one and misses manifests is not complete either (`source_place`): an unmounted file
  system is no wish.
- A document is taken whole or not at all, and a bad one changes nothing but itself.
- To take the pods of a file away, remove the file (or state an empty ``PodList``); emptying it is an error, because a
  half-written file looks the same.
"""

"""Rules of scheduling that the node holds a pod against, too: affinity, tolerations, priority
(component-helpers, scheduling/corev1). Pure."""

"""Volcano's `numa-aware` plugin as values and functions: would it let a pod onto a node, onto which CPUs does it believe the
pod will go, and which score does it give the node.

`plugin` is the door, `cases` its form as JSON. Proven against Volcano 1.15.1, whose answers are in tests/numacore/volcano;
other versions follow its documents (`versions`). It knows CPUs only, reads no init containers and no scope, and its merge is that of an
old kubelet: what the kubelet says of the same pod is another question.
"""

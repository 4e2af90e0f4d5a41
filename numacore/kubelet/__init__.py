"""The kubelet's resource managers as values and functions: would it admit this pod, onto which CPUs and memory, or why not.

`node` is the door: `node.start(settings, machine)` gives a running node, `node.admit(running, pod)` a verdict and the node after it.
Modules are named as the kubelet's packages. Proven against kubelet 1.34 to 1.37; what is known of 1.21 to 1.33 comes from its documents.
"""

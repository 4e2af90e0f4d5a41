"""Changes the settings of one node's kubelet and takes them back by itself if the kubelet is not healthy.

The only part of the product with rights over a node. It runs once, for one signed order, starts no program and knows no shell: files
are written here, systemd is asked over D-Bus. `steps` is what it does, in which order and why.
"""

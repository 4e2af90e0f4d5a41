"""One reader per source on a node: sysfs, procfs, cgroups, the kubelet's files and socket, names of log links.

Who may call them: the programs of the agent. Each reader works alone and never raises for what it reads: what is
missing, forbidden or broken becomes None and a counted `Problem` with its cause. Only `files` opens anything.
"""

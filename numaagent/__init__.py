"""The programs that run on a node: `exporter` reads and tells, and never changes anything.

Who may call it: an operator or a DaemonSet through `python -m numaagent PROGRAM`, and the simulator, which points the
same program at trees that it wrote. The programs are strangers to each other; what they share are `readers`.
"""

"""What would happen: pods judged on nodes as they stand now, under their own settings or others, by the kubelet's rules and by Volcano's.

`candidate` makes a node of what is known of it, `judging` asks both engines, `disagreement` says why they differ. Nothing here
changes anything.
"""

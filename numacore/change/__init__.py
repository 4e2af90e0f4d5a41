"""What a policy asks of one node's kubelet, what its settings become, and what has to go with them.

`wish` is what somebody wants, `asking` turns it into settings for one machine, `route` says which file they go to, `editing` writes
that file's text, `leaving` names the state files that must go, and `order` is what the applier is given. Nothing here changes anything.
"""

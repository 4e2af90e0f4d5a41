"""The settings of a kubelet, checked as it checks them when it starts, and what it does silently.

Kubelet 1.34 to 1.37, cmd/kubelet/app/server.go: flags, the file, drop-ins and flags again make one configuration; it is
validated; then the managers are made.
"""

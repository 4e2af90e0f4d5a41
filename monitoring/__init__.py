"""What *is*: inventory, live state, history and the pages that show them. Nothing here changes anything outside.

Who may call it: `policies` uses models, selectors, live and kube; `numaweb` plugs in the doors (urls, routing, slots).
"""

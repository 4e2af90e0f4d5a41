"""Speed and memory as ratios against a peer that ran beside ours in the same minutes: `make bench`.

Who may call it: people. No test depends on a figure of this room, and the product never imports it.
"""

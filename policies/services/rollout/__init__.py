"""Rollouts: a policy is planned, confirmed, and goes through its nodes one after another, each verified, each able to go back.

`control` is what people do, `planning` makes the plan, `work` goes on with it: the way of one node stands in `course`, from top to bottom.
"""

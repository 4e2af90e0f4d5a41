"""The rules of NUMA placement, in pure Python.

Who may call it: everybody. What it may call: msgspec and a short part of the standard library. It opens no file,
reads no clock, rolls no dice, so every answer can be asked for again and comes out the same.
"""

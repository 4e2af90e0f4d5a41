"""Writes of this room: what should be, and what is done about it. Doors and tasks call these."""

"""What this room's parts of other rooms' pages ask for."""

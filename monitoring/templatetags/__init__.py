"""Tags and filters of this room's templates."""

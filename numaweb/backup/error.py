"""Why there is no backup, or nothing was put back."""


class BackupError(Exception):
    """The cause and the remedy; nothing was changed."""

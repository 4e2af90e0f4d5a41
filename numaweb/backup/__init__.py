"""Backups: everything that the database keeps, in one file, taken while numaweb works, and put back into an empty database.

They need no program of the database's own and fit the tables exactly, or are refused. Secrets are in them as the database
has them: encrypted with the secret key, which is not in them.
"""

from numaweb.backup.archive import Manifest, read_manifest, restore, write
from numaweb.backup.error import BackupError

__all__ = ["BackupError", "Manifest", "read_manifest", "restore", "write"]

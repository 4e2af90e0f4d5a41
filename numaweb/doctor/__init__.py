"""`manage.py doctor`: whether everything that this installation stands on is as it should be, and what to do where not.

It asks and changes nothing. Every question has bounds, and what cannot be seen from here is said to be so.
"""

from numaweb.doctor.examination import PARTS, examine
from numaweb.doctor.finding import Finding, State

__all__ = ["PARTS", "Finding", "State", "examine"]

"""`python -m tests.deploy`: where helm is, built if it is not there yet. For `make chart`."""

from tests.deploy import programs

print(programs.helm())

"""The Django project: settings, addresses, processes and sign-in. It plugs the rooms together and holds no rule."""

__version__ = "0.1.0"

"""What should be: the audit of every change is here; whatever changes the outside world will be here too."""

"""What comes back: answers, their errors and files, and what can be derived from them for nothing."""

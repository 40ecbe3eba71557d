"""Ground that knows nothing of privacy: arguments, wrong calls, files, signals, forks, progress, HTML."""

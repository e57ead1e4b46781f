"""Package `foreign`: what files of other formats hold, and how arrays show it where it lies."""

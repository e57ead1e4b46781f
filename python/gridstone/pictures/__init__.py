"""What every picture has: a theme, a figure, axes with units, the plane that is shown, colours of values."""

"""Messages about sample drains, rendered by the announcer's own code. Nothing is sent."""

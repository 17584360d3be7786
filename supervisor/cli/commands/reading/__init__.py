"""Commands that only look: at pods, other objects, their logs, images and figures."""

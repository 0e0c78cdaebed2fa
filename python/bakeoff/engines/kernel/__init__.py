"""Real Linux in virtual time: build a User-Mode-Linux kernel, check it, boot it."""

"""The process behind `bakeoff` and `python -m bakeoff`."""

import signal

# A Ctrl-C while the commands are imported ends the process as the system does it, without a word; `main` has it handled
# from then on.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from bakeoff.cli import main

if __name__ == "__main__":
    main()

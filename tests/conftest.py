"""What every test process begins with."""

import signal

# A shell that starts the tests in the background has them and their children ignore Ctrl-C; several tests send one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

"""The process behind `bakeoff` and `python -m bakeoff`."""

# What `signal` is made of, which takes far longer to import. A Ctrl-C while the commands are imported ends the process
# as the system does it, without a word; `main` has it handled from then on.
import _signal  # type: ignore[import-not-found]  # private: nobody wrote stubs

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from bakeoff.cli import main

if __name__ == "__main__":
    main()

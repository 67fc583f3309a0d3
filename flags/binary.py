"""How every binary starts and ends: flags, `--help`, and one readable line for an error."""

import logging as standard_logging
import os
import sys
import textwrap
from collections.abc import Callable, Sequence

from absl import flags, logging

_ERRORS = (flags.Error, ValueError, OSError, ImportError, FloatingPointError)


def run(
    main: Callable[[], int | None],
    define_flags: Callable[[], None],
    documentation: str,
    argv: Sequence[str] | None = None,
) -> None:
    """Parses the command line, calls `main` and exits the process.

    A wrong flag, path, file or version (`flags.Error`, `ValueError`, `OSError`, `ImportError`) and numbers that are no
    longer finite (`FloatingPointError`) end in one line on standard error and exit status 1; `--verbosity=1` shows the
    stack trace too. Exit status 0 otherwise, or what `main` returns or exits with (75: stopped by a signal, to be
    resumed).

    Args:
        main: does the work, after the flags are parsed.
        define_flags: defines the flags of this binary.
        documentation: the binary's docstring, printed by `--help`.
        argv: the command line, program name first; default `sys.argv`.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # errors reach us as exceptions
    argv = list(sys.argv if argv is None else argv)
    program = os.path.basename(argv[0])
    known_before = set(flags.FLAGS)
    define_flags()
    own_flags = [name for name in flags.FLAGS if name not in known_before]
    if any(argument in ("--help", "-help", "-h", "--helpfull") for argument in argv[1:]):
        print(_help_text(program, documentation, own_flags))
        sys.exit(0)
    try:
        rest = flags.FLAGS(argv)
        if len(rest) > 1:
            raise flags.Error(f"Flags only, no positional arguments. Received: {rest[1]}")
        logging.use_absl_handler()
        _log_plainly()
        status = main()
    except _ERRORS as error:
        if flags.FLAGS.is_parsed() and flags.FLAGS["verbosity"].value > 0:
            logging.exception("%s failed", program)
        message = " ".join(str(error).split()) or type(error).__name__
        print(f"{program}: error: {message}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        sys.exit(130)
    sys.exit(status or 0)


def _help_text(program: str, documentation: str, own_flags: Sequence[str]) -> str:
    lines = [program, "", textwrap.dedent(documentation).strip(), "", "Flags:", ""]
    for name in sorted(own_flags):
        flag = flags.FLAGS[name]
        default = flag.default_as_str.strip("'") if flag.default is not None else ""
        lines.append(f"  --{name}" + (f"  (default: {default})" if default else ""))
        lines.extend(
            textwrap.wrap(flag.help, 92, initial_indent=" " * 6, subsequent_indent=" " * 6)
        )
    lines.append("  --flagfile=FILE\n      Read flags from a file, one a line; # begins a comment.")
    lines.append("  --verbosity=1\n      Show the stack trace of an error.")
    return "\n".join(lines)


def _log_plainly() -> None:
    """Logs `time message` on standard error, at INFO and above."""
    if not flags.FLAGS["verbosity"].present:
        logging.set_verbosity(logging.INFO)
    handler = logging.get_absl_handler()
    handler.setFormatter(standard_logging.Formatter("%(asctime)s %(message)s", datefmt="%H:%M:%S"))
    if flags.FLAGS["verbosity"].value <= 0:
        handler.addFilter(_is_ours_or_an_error)


def _is_ours_or_an_error(record: standard_logging.LogRecord) -> bool:
    """Leaves out what TensorFlow tells its own developers (sharding times, renamed inputs)."""
    of_tensorflow = f"{os.sep}tensorflow{os.sep}" in record.pathname
    return not of_tensorflow or record.levelno >= standard_logging.ERROR

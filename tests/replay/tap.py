# SPDX-License-Identifier: BSD-2-Clause
"""Test Anything Protocol for the Python tests of this folder."""
import sys

_run = _failed = 0


def ok(cond, name, detail=''):
    global _run, _failed
    _run += 1
    _failed += not cond
    print('%sok %d - %s' % ('' if cond else 'not ', _run, name))
    if not cond and detail:
        for line in str(detail).splitlines()[:12]:
            print('# ' + line)
    sys.stdout.flush()
    return bool(cond)


def skip(name, why):
    global _run
    _run += 1
    print('ok %d - %s # SKIP %s' % (_run, name, why))


def done():
    print('1..%d' % _run)
    sys.exit(1 if _failed else 0)

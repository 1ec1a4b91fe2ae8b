# SPDX-License-Identifier: BSD-2-Clause
"""TAP for the tests of the command line, and the command under test."""
import json
import os
import subprocess
import sys

INLAY = os.environ['INLAY']
SOURCE = os.environ['SOURCE_ROOT']
OBJECTS = os.environ.get('OBJECTS', '')
DATA = os.path.join(SOURCE, 'tests', 'data')
WAITS = os.path.join(SOURCE, 'tests', 'independent', 'waits.py')
SHARED = os.environ.get('INLAY_SHARED') or os.path.join(SOURCE, '..', 'shared')

_run = _failed = 0


def ok(cond, name, *notes):
    global _run, _failed
    _run += 1
    print(f'{"" if cond else "not "}ok {_run} - {name}')
    if not cond:
        _failed += 1
        for note in notes:
            for line in str(note).splitlines()[:20]:
                print(f'# {line[:300]}')
    sys.stdout.flush()
    return bool(cond)


def equal(got, want, name):
    return ok(got == want, name, f'got  {got!r}', f'want {want!r}')


def skip(name, why):
    global _run
    _run += 1
    print(f'ok {_run} - {name} # SKIP {why}')


def skip_all(why):
    print(f'1..0 # SKIP {why}')
    sys.exit(0)  # the plan says it; a status of its own would be an error to TAP


def done():
    print(f'1..{_run}')
    sys.exit(1 if _failed else 0)


def inlay(*args, **kw):
    """Runs it; .out and .err are text (undecodable bytes kept), .rc the status."""
    kw.setdefault('timeout', 120)
    if 'input' not in kw:
        kw.setdefault('stdin', subprocess.DEVNULL)
    p = subprocess.run([INLAY, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)
    p.out = p.stdout.decode(errors='surrogateescape')
    p.err = p.stderr.decode(errors='surrogateescape')
    p.rc = p.returncode
    return p


def rows_of(text):
    """(waits, open rows, summary) of --json output."""
    rows, opened, summary = [], [], None
    for line in text.splitlines():
        obj = json.loads(line)
        if 'summary' in obj:
            summary = obj['summary']
        elif 'open' in obj:
            opened.append(obj)
        else:
            rows.append(obj)
    return rows, opened, summary


def can_bpf():
    """A live run needs root and a kernel that lets it."""
    if os.geteuid():
        return 'needs root'
    p = inlay('runqslower', '-d', '100ms', '10s')
    return None if p.rc == 0 else f'no BPF here: {p.err.strip().splitlines()[-1] if p.err else p.rc}'

# SPDX-License-Identifier: BSD-2-Clause
"""What the goals' tests share: where things are, TAP, running inlay.

They run by meson (which sets INLAY, TOOLS and OBJECTS) and by hand (build/ is the default).
"""
import glob
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get('BUILD', 'build'))
INLAY = os.environ.get('INLAY') or os.path.join(BUILD, 'inlay')
TOOLS = os.environ.get('TOOLS') or os.path.join(BUILD, 'tests', 'tools')
OBJECTS = os.environ.get('OBJECTS') or os.path.join(BUILD, 'tests', 'cli')
RQS_OBJECTS = os.path.join(os.path.dirname(INLAY), 'bpf')
DATA = os.path.join(TOP, 'tests', 'data')
WAITS = os.path.join(TOP, 'tests', 'independent', 'waits.py')

_count = _failed = _skipped = 0


def ok(good, name, *notes):
    global _count, _failed
    _count += 1
    print(f'{"ok" if good else "not ok"} {_count} - {name}')
    if not good:
        _failed += 1
        for note in notes:
            for line in str(note).splitlines()[:12]:
                print(f'#   {line[:400]}')
    sys.stdout.flush()
    return bool(good)


def skip(name, why):
    global _count, _skipped
    _count += 1
    _skipped += 1
    print(f'ok {_count} - {name} # SKIP {why}', flush=True)


def skip_all(why):
    """In TAP it is the plan that says so; an exit status of its own would count as an error."""
    print(f'1..0 # SKIP {why}')
    sys.exit(0)


def own_pid_namespace():
    """BPF and perf see the pids of the first namespace, which a process in another cannot know."""
    try:
        return os.readlink('/proc/self/ns/pid') != 'pid:[4026531836]'
    except OSError:
        return False


def done():
    print(f'1..{_count}')
    sys.exit(1 if _failed else 0)


def run(*args, before=(), **kw):
    """Runs inlay (behind the command `before`, if any); .out and .err are text, undecodable bytes kept."""
    kw.setdefault('timeout', 300)
    if 'input' not in kw:
        kw.setdefault('stdin', subprocess.DEVNULL)
    kw.setdefault('stdout', subprocess.PIPE)
    kw.setdefault('stderr', subprocess.PIPE)
    exe = kw.pop('exe', INLAY)
    p = subprocess.run([*before, exe, *map(str, args)], **kw)
    p.out = (p.stdout or b'').decode(errors='surrogateescape')
    p.err = (p.stderr or b'').decode(errors='surrogateescape')
    p.rc = p.returncode
    return p


def recordings():
    """Every recording that ships, and every text of one: all of them are input."""
    return sorted(f for f in glob.glob(os.path.join(DATA, '*')) if not f.endswith('.md'))

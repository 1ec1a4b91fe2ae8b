#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Without any privilege, and without the kernel's help.

A copy of inlay under another name, on copies of the recordings and objects under other names, run by user nobody in an
empty environment, in a mount namespace whose /sys is empty (no /sys/kernel/btf), under a filter that kills the process
at its first bpf(2). Two such runs must be byte-identical, and equal to a plain run of the real file by whoever runs
this test, but for the uid in the first line.

Without root the mount namespace and the other user cannot be had: the filter and the copies are what is left.
"""
import json
import os
import re
import shutil
import signal
import stat
import tempfile

from lib import INLAY, OBJECTS, RQS_OBJECTS, TOOLS, done, ok, recordings, run, skip, skip_all

NOBPF = os.path.join(TOOLS, 'nobpf')
PROBE = 'import ctypes, os; ctypes.CDLL(None).syscall(321 if os.uname().machine == "x86_64" else 280, 0, 0, 0)'


def cage(*options):
    return [NOBPF, *options, '--']


def works(options):
    """Whether the cage can be built, and really kills."""
    p = run('-c', 'pass', before=cage(*options), exe='/usr/bin/python3')
    if p.rc == 77:
        return p.out.strip()
    p = run('-c', PROBE, before=cage(*options), exe='/usr/bin/python3')
    return None if p.rc == -signal.SIGSYS else f'bpf(2) is not killed under it (status {p.rc})'


def uid_masked(text):
    return re.sub(r'; uid \d+,', '; uid N,', text)


def times_masked(text):
    """How long a program ran, or its verification, is measured, and differs; all else must not."""
    text = re.sub(r'"((?:mean|p50|p99)_ns|duration_us)":[\d.]+', r'"\1":T', text)
    return re.sub(r'[\d.]+ ns', 'T ns', text)


if not os.access(NOBPF, os.X_OK):
    skip_all(f'{NOBPF} is not built')
options = ['--hide-sys', '--nobody'] if os.geteuid() == 0 else []
why = works(options)
if why and options:
    skip('with /sys hidden', why)
    options = ['--nobody']
    why = works(options)
if why:
    skip_all(why)
ok(True, f'bpf(2) kills a process in the cage ({" ".join(options) or "filter only: not root"})')

# Not under /tmp's name for us: nobody must be able to go in, and must not be able to write.
home_dir = tempfile.TemporaryDirectory(prefix='inlay-nobody-')  # gone with the process
home = home_dir.name
os.chmod(home, 0o755)
try:
    exe = os.path.join(home, 'nothing-special')
    shutil.copy(INLAY, exe)
    os.chmod(exe, 0o555)
    PLAIN = {}

    def copied(path, name):
        to = os.path.join(home, name)
        shutil.copy(path, to)
        os.chmod(to, 0o444)
        return to

    def caged(*args):
        return run(*args, before=cage(*options), exe=exe, env={}, cwd=home)

    # ---- runqslower
    for number, recording in enumerate(recordings()):
        name = os.path.basename(recording)
        copy = copied(recording, f'r{number}')          # no suffix: the bytes must tell
        for form in ((), ('--json',), ('--json', '--hist', '--summary', '--storage', 'hash')):
            args = ('runqslower', '-i', copy, *form, '1ms')
            plain, first, second = run(*args), caged(*args), caged(*args)
            what = f'runqslower {" ".join(form)} on {name}'
            rows = plain.out.count('"longest_ns"' if '--summary' in form else '\n')
            least = 3 if '--summary' in form else 20
            ok(plain.rc == 0 and rows >= least, f'{what}: a plain run prints {rows} of its rows', plain.err)
            ok((first.rc, first.stdout, first.stderr) == (second.rc, second.stdout, second.stderr) and first.rc == 0,
               f'{what}: two runs as nobody are byte-identical', first.rc, second.rc, first.err)
            ok(uid_masked(first.out) == uid_masked(plain.out) and uid_masked(first.err) == uid_masked(plain.err),
               f'{what}: as nobody the same as plain but for the uid', first.err, plain.err)
            if form in ((), ('--json',)):
                uid = 65534 if '--nobody' in options else os.geteuid()
                said = [(p.err if form else p.out).splitlines()[0] for p in (first, plain)]
                ok(f'; uid {uid}, bpf(2) not used' in said[0] and f'; uid {os.geteuid()}, bpf(2) not used' in said[1],
                   f'{what}: the first line says whose run it was, and that bpf(2) was not used', *said)

    # ---- run: an object of one's own on a recording, its maps and what it prints
    events = os.path.join(OBJECTS, 'events.bpf.o')
    hog = os.path.join(home, 'r1')
    if os.path.exists(events):
        copy = copied(events, 'program')
        for form in ((), ('--json',)):
            args = ('run', copy, '-i', hog, '--maps', *form)
            plain, first, second = (run(*args), caged(*args), caged(*args))
            ok(plain.rc == 0 and 'switches' in plain.out, f'run {" ".join(form)}: a plain run prints its maps', plain.err)
            ok(first.rc == second.rc == 0 and times_masked(first.out) == times_masked(second.out) and
               first.stderr == second.stderr, f'run {" ".join(form)}: two runs as nobody are the same but for measured times',
               first.err, second.err)
            ok(times_masked(first.out) == times_masked(plain.out) and first.err == plain.err,
               f'run {" ".join(form)}: as nobody the same as plain but for measured times', first.err, plain.err)
        once = copied(os.path.join(OBJECTS, 'once.bpf.o'), 'once')
        context = os.path.join(home, 'ctx')
        with open(context, 'wb') as f:
            f.write((40).to_bytes(8, 'little') + (2).to_bytes(8, 'little'))
        os.chmod(context, 0o444)
        p = caged('run', once, '--ctx-in', context, '--json')
        ok(p.rc == 0 and json.loads(p.out.splitlines()[0])['retval'] == 42, 'run: a program by itself, as nobody', p.out, p.err)
    else:
        skip('run as nobody', f'{events} is not built')

    # ---- check: all that ships, by the model's types as /sys is hidden
    for number, name in enumerate(sorted(os.listdir(RQS_OBJECTS)) if os.path.isdir(RQS_OBJECTS) else ()):
        if not name.endswith('.bpf.o') or not name.startswith('runqslower'):
            continue
        copy = copied(os.path.join(RQS_OBJECTS, name), f'o{number}')
        for form in ((), ('--json',)):
            first, second = caged('check', copy, *form), caged('check', copy, *form)
            good = first.out.count('"verdict":"success"') if form else first.out.count(' accepted ')
            ok(first.rc == 0 and not first.err and good >= 5 and
               times_masked(first.out) == times_masked(second.out),
               f'check {" ".join(form)} {name}: every program accepted, twice the same but for measured times', first.out[-300:], first.err)
        if '--hide-sys' in options:
            ok(re.match(r"types: inlay's (own )?model", caged('check', copy).out),
               f'check {name}: without /sys/kernel/btf it says that the types are the model\'s', caged('check', copy).out[:100])
    if os.path.exists(events):
        refused = copied(os.path.join(OBJECTS, 'refused.bpf.o'), 'refused')
        p = caged('check', refused)
        ok(p.rc == 1 and "R1 invalid mem access 'scalar'" in p.out, 'check: a refusal has its reason, as nobody', p.out, p.err)
        p = caged('dump', 'xlated', copied(events, 'program2'), 'count_wakeup')
        ok(p.rc == 0 and '(95) exit' in p.out, 'dump xlated, as nobody', p.err)

    # ---- live needs privilege, and says so instead of being killed
    if '--nobody' in options:
        p = caged('runqslower', '5ms')
        ok(p.rc == 1 and not p.out and len(p.err.splitlines()) == 1 and 'root' in p.err and '-i FILE' in p.err,
           'a live run as nobody: one line that says what it needs, and that -i needs nothing', p.rc, p.err)
    leftover = [f for f in os.listdir(home) if os.lstat(os.path.join(home, f)).st_uid == 65534]
    ok(not leftover, 'nothing was left behind', leftover)
finally:
    shutil.rmtree(home, onerror=lambda fn, path, exc: (os.chmod(path, stat.S_IRWXU), fn(path)))
done()

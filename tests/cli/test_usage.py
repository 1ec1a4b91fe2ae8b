#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Options, units, exit statuses, help; man pages and completion say what the tables say."""
import os
import re

from tapcli import DATA, INLAY, SOURCE, done, equal, inlay, ok, rows_of

HOG = os.path.join(DATA, 'hog.perf.data.zst')
COMMANDS = ('runqslower', 'run', 'check', 'dump')


def one_line(p, status, pattern, name):
    """The status, nothing on stdout, and a first line of stderr that says what is wrong."""
    first = p.err.splitlines()[0] if p.err else ''
    ok(p.rc == status and not p.out and first.startswith('inlay: ') and re.search(pattern, first), name,
       f'status {p.rc}, want {status}', p.err, p.out)


USAGE = [
    ((), 'no command'),
    (('brew',), "unknown command 'brew'"),
    (('runqslower', '--tea'), "unknown option '--tea'"),
    (('runqslower', '-z'), "unknown option '-z'"),
    (('runqslower', '-d'), 'needs a value'),
    (('runqslower', '--json=yes'), 'takes no value'),
    (('runqslower', '5 parsecs'), "'5 parsecs' is no time"),
    (('runqslower', '5parsecs'), 'is no time'),
    (('runqslower', '-1'), "'-1' must not be negative"),
    (('runqslower', '-5ms'), 'unknown option|must not be negative'),
    (('runqslower', ''), 'is no time'),
    (('runqslower', '.'), 'is no time'),
    (('runqslower', 'ms'), 'is no time'),
    (('runqslower', '1.2.3ms'), 'is no time'),
    (('runqslower', '1e3'), 'is no time'),
    (('runqslower', '99999999999999999999'), 'too long'),
    (('runqslower', '99999999999s'), 'too long'),
    (('runqslower', '1', '2'), 'at most 1 argument'),
    (('runqslower', '-d', '0'), 'more than 0'),
    (('runqslower', '-p', '0'), 'is no number'),
    (('runqslower', '-p', '-3'), 'is no number'),
    (('runqslower', '-p', '12x'), 'is no number'),
    (('runqslower', '-t', '99999999999'), 'is no number'),
    (('runqslower', '-C', 'all'), 'is no list of CPUs'),
    (('runqslower', '-C', '3-1'), 'is no list of CPUs'),
    (('runqslower', '-C', '8192'), 'is no list of CPUs'),
    (('runqslower', '-C', '1,'), 'is no list of CPUs'),
    (('runqslower', '--storage', 'cloud'), 'none of task, hash'),
    (('runqslower', '--metric', 'luck'), 'none of auto, wakeup, waking'),
    (('runqslower', '--attach', 'raw_tp', '--storage', 'task'), 'no typed tasks'),
    (('--engine', 'steam', 'runqslower'), 'is no engine'),
    (('runqslower', '--engine', 'user'), 'needs a recording'),
    (('runqslower', '--engine', 'kernel', '-i', HOG), 'user engine'),
    (('--storage-impl', 'attic', 'runqslower'), 'is none'),
    (('--seed', 'x', 'runqslower'), 'is no number'),
    (('check',), 'check needs OBJ'),
    (('run',), 'run needs OBJ'),
    (('dump', 'bytecode'), 'dump needs'),
    (('dump', 'upside-down', 'x.o'), 'is no stage'),
    (('dump', 'xlated', '--raw', 'x', 'x.o', 'p'), "--raw is for one program's machine code"),
    (('dump', 'jited', '--raw', 'x', 'x.o'), "--raw is for one program's machine code"),
    (('--no-inline=storage,teapots', 'dump', 'lowered', 'x.o'), "'storage,teapots' is no list of what is inlined"),
    (('--no-inline=map,', 'dump', 'lowered', 'x.o'), "'map,' is no list of what is inlined"),
    (('check', '--csv=semicolons', 'x.o'), 'none of its forms'),
]
for args, pattern in USAGE:
    one_line(inlay(*args), 2, pattern, f'usage error, status 2: inlay {" ".join(args)}')

FAILED = [
    (('runqslower', '-i', '/no/such/file'), '/no/such/file: No such file'),
    (('runqslower', '-i', '/'), '/: '),
    (('runqslower', '-i', '/dev/null'), '/dev/null'),
    (('runqslower', '-i', INLAY), 'not a recording|no recording'),
    (('run', '/no/such.o'), '/no/such.o: No such file'),
    (('run', INLAY), INLAY),
    (('dump', 'bytecode', '/etc/passwd'), '/etc/passwd'),
    (('dump', 'jited', INLAY), INLAY),
]
for args, pattern in FAILED:
    one_line(inlay(*args), 1, pattern, f'failed job, status 1: inlay {" ".join(map(os.path.basename, args))}')
p = inlay('check', '/no/such.o')
ok(p.rc == 1 and '/no/such.o: No such file' in p.err, 'check of a file that is not there fails and names it', p.err)

# units: the same threshold written in every way gives the same rows
want = inlay('runqslower', '-i', HOG, '--json', '2ms').out
ok(len(rows_of(want)[0]) >= 20, 'there are at least 20 waits over 2 ms to compare with')
for text in ('2000', '2000us', '2000µs', '2ms', '2.0ms', '2000000ns', '0.002s', '.002s', '2 ms', '2000.0'):
    equal(inlay('runqslower', '-i', HOG, '--json', text).out, want, f'MIN {text!r} is 2 ms')
default = inlay('runqslower', '-i', HOG, '--json').out
equal(inlay('runqslower', '-i', HOG, '--json', '10ms').out, default, 'MIN is 10 ms by default')
rows, _, summary = rows_of(inlay('runqslower', '-i', HOG, '--json', '0').out)
equal(len(rows), summary['waits'], 'MIN 0 lists every wait')

# strictly longer, to the nanosecond
exact = rows_of(want)[0][5]['wait_ns']


def waits_over(ns):
    got = rows_of(inlay('runqslower', '-i', HOG, '--json', f'{ns}ns').out)[0]
    return [r['wait_ns'] for r in got]


ok(exact not in waits_over(exact), 'a wait exactly as long as MIN is not listed')
ok(exact in waits_over(exact - 1), 'a wait one nanosecond longer than MIN is listed')

# global options before and behind the command
a = inlay('--seed', '7', '--engine', 'user', 'runqslower', '-i', HOG, '--json')
b = inlay('runqslower', '-i', HOG, '--json', '--engine=user', '--seed=7')
ok(a.rc == b.rc == 0 and a.out == b.out, 'global options may stand before or behind the command', a.err, b.err)
equal(inlay('runqslower', '-i', HOG, '--', '2ms').rc, 0, '"--" ends the options')

# help
p = inlay('--help')
ok(p.rc == 0 and not p.err and all(f'  {c} ' in p.out for c in COMMANDS), '--help lists the commands', p.out)
equal(inlay('--version').out, f'inlay {os.environ["VERSION"]}\n', '--version prints the version')


def options_in_help(text):
    return set(re.findall(r'^\s+(?:-\w, )?(--[a-z-]+)', text, re.M)) | set(re.findall(r'^\s+(-\w), ', text, re.M))


GLOBAL = options_in_help(inlay('--help').out)
for command in COMMANDS:
    p = inlay(command, '--help')
    ok(p.rc == 0 and p.out.startswith(f'Usage: inlay {command} '), f'{command} --help begins with its usage', p.out)
    ok(max(map(len, p.out.splitlines())) <= 100, f'{command} --help fits 100 columns')
    own = options_in_help(p.out) - GLOBAL
    ok(GLOBAL <= options_in_help(p.out), f'{command} --help names the global options too')
    man = open(os.path.join(SOURCE, 'man', f'inlay-{command}.1.scd')).read()
    section = man.split('# OPTIONS')[1].split('\n# ')[0]
    in_man = set(re.findall(r'\*(--?[a-z][a-z-]*|-[A-Za-z])\*', section, 0))
    in_man = {o for line in section.splitlines() if line.startswith('*-') for o in re.findall(r'\*(-[-\w]+)\*', line)}
    equal(in_man, own, f'the man page of {command} has exactly its options')
    words = set(inlay('--words', command).out.split())
    equal(words, own | GLOBAL, f'completion of {command} offers exactly its options')
main_man = open(os.path.join(SOURCE, 'man', 'inlay.1.scd')).read().split('# OPTIONS')[1].split('\n# ')[0]
in_man = {o for line in main_man.splitlines() if line.startswith('*-') for o in re.findall(r'\*(-[-\w]+)\*', line)}
equal(in_man, GLOBAL, 'the man page of inlay has exactly the global options')
ok(set(COMMANDS) <= set(inlay('--words').out.split()), 'completion offers the commands')

# output that cannot be written is a failure, a reader that goes away is not
if os.path.exists('/dev/full'):
    with open('/dev/full', 'w') as full:
        import subprocess
        p = subprocess.run([INLAY, 'runqslower', '-i', HOG, '0'], stdout=full, stderr=subprocess.PIPE)
    ok(p.returncode == 1 and b'could not be written' in p.stderr, 'a full disk is status 1', p.stderr)
p = subprocess.run(['bash', '-c', f'"{INLAY}" runqslower -i "{HOG}" 0 | head -1 >/dev/null; echo ${{PIPESTATUS[0]}}'],
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
ok(p.stdout.strip() == b'0' and not p.stderr, 'a reader that goes away is status 0 and no message', p.stdout, p.stderr)
done()

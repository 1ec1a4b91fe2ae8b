#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures every goal of release 0.1 on what is checked out, one line a row; exit status 1 on a miss.

    ./bootstrap goals 1 [ROW...]        rows by name, all without; --list names them

A row prints PASS, MISS or SKIP (what the machine does not allow, with the reason; a SKIP is not a miss but is counted in the
last line), the figure, and the goal. Timings are whole-process wall times; comparisons alternate and use medians.
FUZZ=N and WHOLE=N set the number of mutants, EVENTS=N the size of the large recording.
"""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from lib import (BUILD, BUILD_SAN, DATA, INLAY, SHARED, TOP, Measured, Miss, Skip, in_peace, main, need_command, need_file,
                 need_root, row, run, suite, tail, tap)

WAITS = os.path.join(TOP, 'tests', 'independent', 'waits.py')
STORAGES = ('task', 'hash', 'hash-noprealloc')


def shipped(name):
    for f in sorted(os.listdir(DATA)):
        if f.startswith(name + '.') or f == name:
            return os.path.join(DATA, f)
    raise Miss(f'no tests/data/{name}*')


def rows_of(recording, min_arg, *more):
    p = run([INLAY, 'runqslower', '-i', recording, '--json', *more, min_arg])
    if p.returncode:
        raise Miss(f'inlay runqslower -i {recording}: exit {p.returncode}: {tail(p)}')
    return p.out


def compare(recording, text, min_us, at_least=20):
    """Rows against the independent computation, for the three storages. Returns the number of rows."""
    name = os.path.basename(recording)
    outs = {}
    for storage in STORAGES:
        outs[storage] = rows_of(recording, f'{min_us}us', '--storage', storage).replace(f'"storage":"{storage}"', '"storage":"-"')
    if len(set(outs.values())) != 1:
        raise Miss(f'{name}: the three storages differ')
    p = subprocess.run([sys.executable, WAITS, '--min-ns', str(min_us * 1000), '--open', '--compare', '-', '--at-least',
                        str(at_least), text], input=outs['task'].encode(errors='replace'), stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT)
    said = p.stdout.decode(errors='replace').strip()
    if p.returncode:
        raise Miss(f'{name} at {min_us} us: {said[-500:]}')
    objects = [json.loads(line) for line in outs['task'].splitlines()]
    rows = [o for o in objects if 'wait_ns' in o and 'open' not in o]
    for r in rows:
        if sum(share['ns'] for share in r['ran']) != r['wait_ns']:
            raise Miss(f'{name}: shares do not sum to the wait: {r}')
    return len(rows)


@row('rows equal an independent computation (task, CPU, wait to the microsecond, kind, who ran), none missing or extra, '
     '>= 20 each: shipped recordings at 1 ms; the three storages identical')
def rows_shipped():
    pairs = (('hog.perf.data', 'hog.perf.txt'), ('hog.ftrace.txt', 'hog.ftrace.txt'), ('throttled.perf.data', 'throttled.perf.txt'),
             ('storm.trace.dat', 'storm.trace.txt'))
    return ', '.join(f'{rec} {compare(shipped(rec), shipped(text), 1000)}' for rec, text in pairs)


@row('the same for recordings of others: trace.dat files at 100 us, lisa-trace.txt.gz and traceshark-4cpu-ramload at 50 us')
def rows_others():
    traces = need_file(os.path.join(SHARED, 'traces'))
    said = []
    with tempfile.TemporaryDirectory() as tmp:
        for f in sorted(os.listdir(traces)):
            path, text = os.path.join(traces, f), os.path.join(tmp, f + '.txt')
            if f.endswith('.trace.dat'):
                with open(text, 'wb') as out:
                    p = run([need_command('trace-cmd'), 'report', '-t', '-R', path], stdout=out)
                if p.returncode:
                    raise Skip(f'trace-cmd report of {f}: {tail(p)}')
                said.append(f'{f} {compare(path, text, 100)}')
            elif '.txt' in f or '.asc' in f:
                said.append(f'{f} {compare(path, path, 50)}')
    if len(said) < 4:
        raise Miss(f'only {len(said)} recordings in {traces}')
    return ', '.join(said)


@row('recordings nobody here has seen: v6 and v7, 32-bit, big-endian, moved fields, old kernels, pipe mode, compressed, damaged')
def other_formats():
    return '{} checks passed, {} skipped'.format(*(suite(BUILD, 'replay')[i] for i in (0, 2)))


@row('live rows equal a perf recording of the same time within counted losses: >= 99 % one to one, none over MIN missing or extra')
def live_rows():
    need_root()
    passed, _, lines = tap('live_overhead.py', 'rows')
    return f'{passed} checks: ' + next(line for line in lines if 'matched' in line).partition(' - ')[2]


@row("overhead on perf bench sched pipe <= that of Debian's libbpf-tools runqslower in the same run")
def overhead():
    need_root()
    need_command('runqslower')
    _, _, lines = tap('live_overhead.py', 'overhead')
    return next(line for line in lines if 'ratio' in line).partition(' - ')[2]


@row('as nobody, without /sys/kernel/btf, programs renamed, bpf(2) refused by a filter that kills; two runs byte-identical')
def nobody():
    need_root()
    passed, skipped, lines = tap('nobody.py')
    if any('sys hidden' in line for line in lines if 'SKIP' in line):
        raise Skip(f'{passed} checks pass, but /sys cannot be hidden here: {skipped[0]}')
    return f'{passed} checks' + (f'; skipped: {"; ".join(skipped)}' if skipped else '')


@row('replay >= 300,000 events/s from file to rows (interpreter, whole process), <= 256 MiB, for 10^7 events, 8 CPUs, 1,000 tasks, '
     'other events between')
def speed():
    events = int(os.environ.get('EVENTS', 10_000_000))
    gen = os.path.join(BUILD, 'tests', 'tools', 'gen_perf')
    folder = tempfile.mkdtemp(prefix='inlay-speed-')
    try:
        if shutil.disk_usage(folder).free < events * 120:
            raise Skip(f'{events * 120 >> 20} MiB needed in {folder}; TMPDIR chooses another place')
        base, big = os.path.join(folder, 'base'), os.path.join(folder, 'big.perf.data')
        with open(base, 'wb') as f:
            subprocess.run(['zstd', '-qdc', shipped('hog.perf.data')], stdout=f, check=True)
        p = run([gen, base, big, str(events), '8', '1000'])
        if p.returncode:
            raise Miss(f'gen_perf: {tail(p)}')
        head = run([INLAY, 'runqslower', '-i', big, '-d', '1ms', '10ms']).out.splitlines()[0]
        m = re.search(r'(\d+) CPUs, (\d+) events, (\d+) lost', head)
        if not m or int(m[1]) != 8 or int(m[2]) < events or int(m[3]):
            raise Miss(f'the large recording is not what it should be: {head}')
        before, how = in_peace()
        # once for the page cache, and to see that the threshold leaves rows to print
        command = [INLAY, 'runqslower', '-i', big, '7ms']
        with subprocess.Popen([*before, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
            rows = sum(b' ms ' in line for line in p.stdout)
        if rows < 1000 and events >= 10_000_000:
            raise Miss(f'only {rows} rows: not what was to be measured')
        runs = [Measured(command, before) for _ in range(3)]
        if any(r.status for r in runs):
            raise Miss(f'exit {runs[0].status}: {runs[0].err[-200:]}')
        wall, cpu = (statistics.median(getattr(r, what) for r in runs) for what in ('wall', 'cpu'))
        rss = max(r.rss_kib for r in runs)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    said = f'{events / wall:,.0f} events/s ({wall:.1f} s wall, {cpu:.1f} s CPU; {how}), {rows} rows, {rss / 1024:.0f} MiB'
    if events / wall < 300_000 or rss > 256 * 1024:
        raise Miss(said)
    return said


@row('bad input: one clear line each that names what, where and what to do; exit status by contract')
def bad_input():
    passed, skipped, _ = tap('bad_input.py')
    return f'{passed} cases' + (f'; skipped: {"; ".join(skipped)}' if skipped else '')


def sanitized():
    """The ASan + UBSan build."""
    if not os.path.exists(os.path.join(BUILD_SAN, 'build.ninja')):
        p = run(['meson', 'setup', BUILD_SAN, TOP, '-Db_sanitize=address,undefined', '-Db_lundef=false'])
        if p.returncode:
            raise Miss(f'meson setup: {tail(p)}')
    p = run(['ninja', '-C', BUILD_SAN])
    if p.returncode:
        raise Miss(f'the sanitized build fails: {tail(p)}')
    return BUILD_SAN


@row('>= 100,000 mutated inputs of each reader, of BTF and of objects under ASan + UBSan: no crash, no hang; and mutants through '
     'the whole command')
def mutants():
    fuzz, whole = os.environ.get('FUZZ', '100000'), os.environ.get('WHOLE', '1000')
    passed, skipped, _ = tap('mutants.py', sanitized(), '--iterations', fuzz, '--whole', whole, timeout=6 * 3600)
    if int(fuzz) < 100000:
        raise Skip(f'{passed} kinds of input pass with {fuzz} mutants only')
    return f'{passed} kinds of input, {fuzz} mutants for each harness, {whole} for the whole command'


@row('the whole suite clean under ASan + UBSan')
def suite_sanitized():
    return '{} passed, {} failed, {} skipped'.format(*suite(sanitized()))


@row('the whole suite')
def suite_plain():
    return '{} passed, {} failed, {} skipped'.format(*suite(BUILD))


@row('faults put in one at a time (>= 20) are caught by the suite, all but one at most')
def faults():
    script = os.path.join(TOP, 'scripts', 'faults.py')
    listed = run([sys.executable, script, '--list']).out.strip().splitlines()
    if len(listed) < 20:
        raise Miss(f'only {len(listed)} faults in scripts/faults.txt')
    p = run([sys.executable, script])
    if p.returncode:
        bad = [line for line in p.out.splitlines() if line.startswith(('MISSED', 'ERROR'))]
        raise Miss(f'{tail(p, 1)}\n' + '\n'.join('       ' + b[:200] for b in bad[:10]))
    return p.out.strip().splitlines()[-1]


@row('./bootstrap demo prints the recording, rows over 5 ms with who ran, the last line, the independent verdict, two commands')
def demo():
    p = run([os.path.join(TOP, 'bootstrap'), 'demo'], env=dict(os.environ, NO_INSTALL='1', BUILD=os.path.relpath(BUILD, TOP)))
    if p.returncode:
        raise Miss(tail(p))
    wanted = {
        'a line on the recording': r'\d+\.\d+ s, \d+ CPUs, \d+ events, \d+ lost;.* uid \d+, bpf\(2\) not used',
        'rows over 5 ms with who ran': r'(?m)^ *\d+\.\d+ .+ \d+ +\d+\.\d{3} ms \w+ +\S+.*/\d+ \d+\.\d{3} ms',
        'a last line': r'(?m)^\d+ waits over 5\.000 ms of \d+, p99 \d+\.\d{3} ms, .*\d+ missed',
        'the independent verdict': r'(?m)^independent check: \d+ rows over 5 ms equal',
        'the live command': r'(?m)^ *sudo .*inlay runqslower 5ms',
        'the recording command': r'(?s)perf record .*runqslower -i ',
    }
    lacks = [what for what, pattern in wanted.items() if not re.search(pattern, p.out)]
    rows = len(re.findall(wanted['rows over 5 ms with who ran'], p.out))
    if lacks or rows < 20:
        raise Miss(f'{rows} rows; lacks: {", ".join(lacks)}')
    return f'{rows} rows, all that it should print'


@row('meson install works, and what it installed, with the source tree gone')
def install():
    folder = tempfile.mkdtemp(prefix='inlay-install-')
    try:
        src, dest, data = (os.path.join(folder, name) for name in ('src', 'dest', 'data'))
        names = run(['git', '-C', TOP, 'ls-files', '-co', '--exclude-standard', '-z']).out.split('\0')
        for name in filter(None, names):
            if os.path.isfile(os.path.join(TOP, name)):
                os.makedirs(os.path.dirname(os.path.join(src, name)), exist_ok=True)
                shutil.copy2(os.path.join(TOP, name), os.path.join(src, name))
        shutil.copytree(DATA, data)
        for cmd in (['meson', 'setup', os.path.join(src, 'build'), src, '--prefix=/usr'],
                    ['ninja', '-C', os.path.join(src, 'build')],
                    ['meson', 'install', '-C', os.path.join(src, 'build'), '--no-rebuild', '--destdir', dest]):
            p = run(cmd)
            if p.returncode:
                raise Miss(f'{" ".join(cmd[:2])}: {tail(p)}')
        shutil.rmtree(src)
        exe = os.path.join(dest, 'usr', 'bin', 'inlay')
        p = run([exe, 'runqslower', '-i', os.path.join(data, 'hog.perf.data.zst'), '5ms'], cwd=dest, env={})
        if p.returncode or p.out.count('\n') < 20:
            raise Miss(f'the installed command: exit {p.returncode}: {tail(p)}')
        installed = [os.path.join(d, f) for d, _, files in os.walk(dest) for f in files]
        man = [f for f in installed if re.search(r'/man1/inlay.*\.1$', f)]
        completion = [f for f in installed if 'completion' in f]
        if len(man) < 2 or not completion:
            raise Miss(f'installed: {len(man)} man pages, {len(completion)} completions')
        return f'{len(installed)} files, {len(man)} man pages; the command works from there'
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@row('a bare Debian 12: ./bootstrap demo, then ./bootstrap check')
def bare_machine():
    need_root()
    need_command('debootstrap')
    p = run([os.path.join(TOP, 'scripts', 'bare-machine.sh'), 'both'])
    lines = p.out.strip().splitlines()
    if p.returncode:
        raise Miss(f'exit {p.returncode}: {tail(p)}')
    if not lines or not re.fullmatch(r'\d+ passed, 0 failed, \d+ skipped', lines[-1]) or \
            not any(line.startswith('independent check:') and ' equal ' in line for line in lines):
        raise Miss(f'not what it should print: {tail(p)}')
    return lines[-1]


if __name__ == '__main__':
    sys.exit(main(1))

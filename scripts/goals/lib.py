# SPDX-License-Identifier: BSD-2-Clause
"""What the goals of every release share: rows, their verdicts, and running things.

A row is a function with @row(goal). It returns the figure that was reached (PASS), raises Miss with what was found instead,
or Skip with what this machine lacks. A row that cannot be measured is not reached: it is counted, and said, but the exit
status is that of the misses.
"""
import os
import re
import subprocess
import sys
import time
import traceback

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get('BUILD', 'build'))
BUILD_SAN = os.path.join(TOP, os.environ.get('BUILD_SAN', 'build-san'))
INLAY = os.path.join(BUILD, 'inlay')
DATA = os.path.join(TOP, 'tests', 'data')
SHARED = os.environ.get('INLAY_SHARED') or os.path.join(os.path.dirname(TOP), 'shared')
ROWS = []


class Skip(Exception):
    pass


class Miss(Exception):
    pass


def row(goal):
    def add(fn):
        ROWS.append((fn.__name__, goal, fn))
        return fn
    return add


def run(cmd, **kw):
    """Runs a command; .out and .err are text whatever bytes there are."""
    kw.setdefault('stdin', subprocess.DEVNULL)
    kw.setdefault('stdout', subprocess.PIPE)
    kw.setdefault('stderr', subprocess.PIPE)
    p = subprocess.run([str(c) for c in cmd], **kw)
    p.out = (p.stdout or b'').decode(errors='replace')
    p.err = (p.stderr or b'').decode(errors='replace')
    return p


def tail(p, lines=4):
    return ' | '.join((p.out + p.err).strip().splitlines()[-lines:])[-600:]


def need_root():
    if os.geteuid():
        raise Skip('needs root')


def need_file(path):
    if not os.path.exists(path):
        raise Skip(f'{path} is not there')
    return path


def need_command(name):
    for folder in os.environ.get('PATH', '').split(':') + ['/usr/sbin', '/sbin']:
        if os.access(os.path.join(folder, name), os.X_OK):
            return os.path.join(folder, name)
    raise Skip(f'{name} is not installed')


def tap(script, *args, build=BUILD, timeout=7200):
    """Runs one of tests/goals; all its checks must pass. Returns (passed, skipped, the lines)."""
    env = dict(os.environ, BUILD=build, PYTHONDONTWRITEBYTECODE='1')
    for name in ('INLAY', 'TOOLS', 'OBJECTS'):
        env.pop(name, None)
    p = run([sys.executable, os.path.join(TOP, 'tests', 'goals', script), *args], env=env, timeout=timeout)
    lines = p.out.splitlines()
    skipped = [line for line in lines if re.match(r'ok .*# SKIP', line)]
    passed = [line for line in lines if re.match(r'ok ', line) and line not in skipped]
    failed = [line for line in lines if line.startswith('not ok')]
    if lines and lines[-1].startswith('1..0'):
        raise Skip(lines[-1].partition('SKIP ')[2] or 'no reason given')
    if failed:
        shown = [line for i, line in enumerate(lines) if line.startswith('not ok') or
                 (line.startswith('#') and any(x.startswith('not ok') for x in lines[max(0, i - 3):i]))]
        raise Miss(f'{len(failed)} of {len(failed) + len(passed)} checks fail\n' + '\n'.join('       ' + s[:200] for s in shown[:30]))
    if p.returncode or not passed or not any(re.match(r'1\.\.\d+', line) for line in lines):
        raise Miss(f'{script} ended with status {p.returncode} after {len(passed)} checks: {tail(p)}')
    return len(passed), [s.partition('# SKIP ')[2] for s in skipped], lines


def suite(build, *suites):
    """Runs meson's tests; (passed, failed, skipped) subtests."""
    cmd = ['meson', 'test', '-C', build, '--no-rebuild']
    for name in suites:
        cmd += ['--suite', name]
    run(cmd, env=dict(os.environ, INLAY_SHARED=SHARED))
    p = run([sys.executable, os.path.join(TOP, 'scripts', 'summary.py'), os.path.join(build, 'meson-logs', 'testlog.json')])
    lines = p.out.strip().splitlines()
    m = re.fullmatch(r'(\d+) passed, (\d+) failed, (\d+) skipped', lines[-1]) if lines else None
    if not m:
        raise Miss(f'no summary: {tail(p)}')
    if p.returncode or int(m[2]) or not int(m[1]):
        bad = [line for line in lines if line.startswith(('FAILED', '    not ok'))]
        raise Miss(lines[-1] + '\n' + '\n'.join('       ' + b[:200] for b in bad[:30]))
    return tuple(map(int, m.groups()))


class Measured:
    """A whole process: wall and CPU seconds, peak memory in KiB, of it and its children."""

    def __init__(self, cmd, before=()):
        start = time.monotonic()
        # through a process of its own, as the kernel keeps the maximum over all children there ever were
        code = ('import os,resource,subprocess,sys\n'
                'p=subprocess.run(sys.argv[1:],stdin=subprocess.DEVNULL,stdout=subprocess.DEVNULL,stderr=subprocess.PIPE)\n'
                'u=resource.getrusage(resource.RUSAGE_CHILDREN)\n'
                'print(p.returncode,u.ru_utime+u.ru_stime,u.ru_maxrss)\n'
                'print(p.stderr.decode(errors="replace"))')
        p = run([*before, sys.executable, '-c', code, *cmd])
        self.wall = time.monotonic() - start
        first, _, self.err = p.out.partition('\n')
        if p.returncode or len(first.split()) != 3:
            raise Miss(f'{cmd[0]} could not be measured: {tail(p)}')
        status, cpu, rss = first.split()
        self.status, self.cpu, self.rss_kib = int(status), float(cpu), int(rss)


def machine():
    """What the timings were taken on."""
    model = 'unknown CPU'
    try:
        with open('/proc/cpuinfo') as f:
            model = next((line.partition(':')[2].strip() for line in f if line.startswith('model name')), model)
    except OSError:
        pass
    return f'{model}, {os.cpu_count()} CPUs, Linux {os.uname().release}, load {os.getloadavg()[0]:.1f}'


def in_peace():
    """Words before a command so that others' work on a busy machine is not measured with it; none if it is idle."""
    if os.getloadavg()[0] < 0.3 * (os.cpu_count() or 1):
        return [], 'idle machine'
    p = run(['chrt', '-f', '1', 'true'])
    return (['chrt', '-f', '1'], 'busy machine: at real-time priority') if p.returncode == 0 else ([], 'BUSY machine')


def main(number):
    args = sys.argv[1:]
    if args == ['--list']:
        for name, goal, _ in ROWS:
            print(f'{name:16} {goal}')
        return 0
    if args and args[0].startswith('-'):
        print('usage: release_N.py [--list | ROW...]', file=sys.stderr)
        return 2
    known = [name for name, _, _ in ROWS]
    for a in args:
        if a not in known:
            print(f"goals: no row '{a}' in release {number}; there are: {' '.join(known)}", file=sys.stderr)
            return 2
    if not os.access(INLAY, os.X_OK):
        print(f'goals: {INLAY} is not built; ./bootstrap goals {number} builds it', file=sys.stderr)
        return 1
    print(f'goals of release {number} on {machine()}', flush=True)
    count = {'PASS': 0, 'MISS': 0, 'SKIP': 0}
    for name, goal, fn in ROWS:
        if args and name not in args:
            continue
        start = time.monotonic()
        try:
            verdict, said = 'PASS', fn()
        except Skip as e:
            verdict, said = 'SKIP', str(e)
        except Miss as e:
            verdict, said = 'MISS', str(e)
        except KeyboardInterrupt:
            raise
        except Exception as e:      # a broken measurement is no measurement: a miss, with where it broke
            where = traceback.extract_tb(e.__traceback__)[-1]
            verdict, said = 'MISS', f'{type(e).__name__}: {e} ({os.path.basename(where.filename)}:{where.lineno})'
        count[verdict] += 1
        print(f'{verdict} {name}: {said}\n     goal: {goal}  ({time.monotonic() - start:.0f} s)', flush=True)
    print(f'goals of release {number}: {count["PASS"]} reached, {count["MISS"]} missed, {count["SKIP"]} not measured here')
    return 1 if count['MISS'] or not count['PASS'] else 0


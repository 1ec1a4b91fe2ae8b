#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""runqslower on the running kernel, looking only at tasks this test starts."""
import collections
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from tapcli import INLAY, can_bpf, done, equal, inlay, ok, rows_of, skip, skip_all

why = can_bpf()
if why and not os.geteuid() == 0:
    p = inlay('runqslower')
    ok(p.rc == 1 and len(p.err.splitlines()) == 1 and 'root' in p.err and '-i FILE' in p.err,
       'without privilege a live run says in one line what is needed, and that -i needs nothing', p.err)
    done()
if why:
    skip_all(why)
folder = tempfile.TemporaryDirectory(prefix='inlay-live-')  # gone with the process
tmp = folder.name
CPU = sorted(os.sched_getaffinity(0))[-1]

# Two that spin and one that naps, on one CPU: waits of many milliseconds.
WORKER = '''
import os, sys, time, threading
name, nap, until = sys.argv[1], float(sys.argv[2]), time.time() + float(sys.argv[3])
open('/proc/self/comm', 'w').write(name)
while time.time() < until:
    if nap:
        time.sleep(nap)
    for i in range(3000):
        pass
'''


def worker(name, nap, seconds):
    return subprocess.Popen(['taskset', '-c', str(CPU), sys.executable, '-c', WORKER, name, str(nap), str(seconds)])


def started(procs):
    """Once they have their names."""
    for p in procs:
        for _ in range(500):
            try:
                if open(f'/proc/{p.pid}/comm').read().startswith('rqs-'):
                    break
            except OSError:
                pass
            time.sleep(0.01)
    return {p.pid for p in procs}


def workload(seconds):
    procs = [worker('rqs-hog1', 0, seconds), worker('rqs-hog2', 0, seconds), worker('rqs-nap', 0.003, seconds)]
    return procs, started(procs)


def finish(procs):
    for p in procs:
        p.kill()
        p.wait()


procs, pids = workload(120)
for more in ([], ['--storage', 'hash'], ['--storage', 'hash-noprealloc'], ['--attach', 'raw_tp'], ['--metric', 'waking']):
    name = ' '.join(more) or 'by default'
    p = inlay('runqslower', '-d', '1.5', '-c', 'rqs-*', '--json', *more, '1ms')
    rows, opened, s = rows_of(p.out)
    ok(p.rc == 0 and len(rows) >= 20 and {r['tid'] for r in rows} <= pids, f'{name}: waits of the tasks started here, no others',
       p.err, len(rows), {r['tid'] for r in rows} - pids)
    ok(all(sum(x['ns'] for x in r['ran']) == r['wait_ns'] for r in rows + opened), f'{name}: shares sum to the wait')
    ok(all(r['tid'] not in [x['tid'] for x in r['ran']] for r in rows if r['kind'] in ('preempted', 'requeued')),
       f'{name}: nobody runs while it waits')
    known = sum(x['ns'] for r in rows for x in r['ran'] if x['tid'] >= 0)
    ok(known == sum(r['wait_ns'] for r in rows) or s['history_lost'], f'{name}: it is known who ran', s)
ok({'preempted', 'requeued'} & {r['kind'] for r in rows}, 'hogs are preempted or requeued')

pid = sorted(pids)[0]
rows, _, s = rows_of(inlay('runqslower', '-d', '1', '-p', pid, '--json', '100us').out)
ok(rows and {r['tgid'] for r in rows} == {pid}, '-p: this process only', {r['tgid'] for r in rows})
rows, _, s = rows_of(inlay('runqslower', '-d', '1', '-t', pid, '-C', CPU, '--json', '100us').out)
ok(rows and {(r['tid'], r['cpu']) for r in rows} == {(pid, CPU)}, '-t, -C: this thread on this CPU only')
p = inlay('runqslower', '-d', '1', '-c', 'rqs-*', '--profile', '--json')
prof = {(c['handler'], c['storage']): c for c in rows_of(p.out)[2]['profile']}
ok(all(prof['sched_switch', x]['runs'] > 100 and prof['sched_switch', x]['mean_ns'] > 0
       for x in ('task', 'hash', 'hash-noprealloc')), '--profile: the kernel counts runs and time of each storage', prof)
ok('p50_ns' not in prof['sched_switch', 'task'], '--profile: what the kernel cannot know is left out')

# the tool does not see itself, which is what waits most with MIN 0
p = subprocess.Popen([INLAY, 'runqslower', '-d', '1', '--json', '0'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
out = p.communicate()[0].decode(errors='surrogateescape')
rows, _, s = rows_of(out)
ok(len(rows) > 100 and p.pid not in {r['tgid'] for r in rows}, 'the command never counts itself')
equal(s['waits'], len(rows) + s['lost'], 'MIN 0: every wait is a row, or counted as lost')

# a task that cannot run is visible at the end: the hogs have the CPU, it may run only when nobody else wants to
tool = ['taskset', '-c', str([c for c in os.sched_getaffinity(0) if c != CPU][0]), INLAY]
if len(os.sched_getaffinity(0)) > 1:
    with open('/proc/sys/kernel/sched_rt_runtime_us') as f:
        throttled = 0 <= int(f.read()) < 1000000
    hungry = worker('rqs-poor', 0, 120)
    started([hungry])
    live = subprocess.Popen([*tool, 'runqslower', '-d', '1.2', '-p', str(hungry.pid), '--json', '100ms'],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    live.stderr.readline()                                            # it is attached
    time.sleep(0.7)
    subprocess.run(['chrt', '-f', '-p', '5', str(pid)], check=True)   # a hog that does not let go
    rows, opened, s = rows_of(live.communicate()[0].decode())
    last = [o for o in opened if o['tid'] == hungry.pid and o['open'] == 'end']
    ok(last and last[0]['wait_ns'] > 10**8 and pid in [x['tid'] for x in last[0]['ran']],
       'a task that waits at the end is an open row', rows, opened, s)
    rows, opened, s = rows_of(inlay('runqslower', '-d', '0.3', '-p', hungry.pid, '--json', '100ms').out)
    name = 'so is one that waited before the start, even if it gives no sign of life at all'
    if throttled and not opened:
        skip(name, 'the kernel gave it the CPU in between (sched_rt_runtime_us)')
    else:
        ok(opened and opened[0]['tid'] == hungry.pid and (throttled or opened[0]['open'] in ('start', 'both')) and
           opened[0]['wait_ns'] > 10**8, name, rows, opened, s)
    subprocess.run(['chrt', '-o', '-p', '0', str(pid)], check=True)
    finish([hungry])
else:
    skip('a task that waits at the end is an open row', 'needs two CPUs')

# endings
for sig in (signal.SIGINT, signal.SIGTERM):
    p = subprocess.Popen([INLAY, 'runqslower', '-c', 'rqs-*', '1ms'], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1.2)
    p.send_signal(sig)
    out, err = p.communicate(timeout=10)
    last = out.decode(errors='replace').splitlines()[-1]
    ok(p.returncode == 0 and re.match(r'\d+ waits over 1.000 ms of \d+', last), f'{sig.name} ends it in order, status 0', last, err)
p = subprocess.run(['bash', '-c', f'"{INLAY}" runqslower -c "rqs-*" 0 2>/dev/null | head -3 >/dev/null; echo ${{PIPESTATUS[0]}}'],
                   stdout=subprocess.PIPE, timeout=30)
equal(p.stdout.strip(), b'0', 'a reader that goes away ends it in order')
p = inlay('runqslower', '-p', '4194304')
ok(p.rc == 1 and 'no process 4194304' in p.err, 'an unknown PID is refused', p.err)
p = inlay('runqslower', '--cgroup', '/no/such')
ok(p.rc == 1 and '/no/such' in p.err, 'an unknown cgroup is refused', p.err)
finish(procs)

# a cgroup of its own
root = next((m.split()[1] for m in open('/proc/self/mounts') if m.split()[2] == 'cgroup2'), None)
group = root and os.path.join(root, f'inlay-test-{os.getpid()}')
procs, pids = workload(60)
try:
    os.mkdir(group)
    with open(os.path.join(group, 'cgroup.procs'), 'w') as f:
        f.write(str(procs[0].pid))
    for more in ([], ['--attach', 'raw_tp']):
        rows, opened, _ = rows_of(inlay('runqslower', '-d', '1', '--cgroup', os.path.basename(group), '--json', *more,
                                        '500us').out)
        ok(rows and {r['tid'] for r in rows + opened} == {procs[0].pid}, f'--cgroup: tasks of that cgroup only {more}',
           rows[:2])
except (OSError, TypeError) as e:
    skip('--cgroup', f'no cgroup can be made here: {e}')

# a signal never cuts a row in two, however full the pipe is
p = subprocess.Popen([INLAY, 'runqslower', '--json', '0'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
time.sleep(2.5)
p.send_signal(signal.SIGINT)
time.sleep(0.2)
out = p.communicate()[0].decode(errors='surrogateescape')
try:
    rows, _, s = rows_of(out)
    ok(p.returncode == 0 and s and len(rows) > 100, 'interrupted while the pipe is full: whole rows and a summary', len(rows))
except ValueError as e:
    ok(False, 'interrupted while the pipe is full: whole rows and a summary', e)
finish(procs)
if group and os.path.isdir(group):
    os.rmdir(group)

# beside perf: every wait in the middle of perf's recording is a row of the live run, and the other way round
perf = os.path.join(tmp, 'perf.data')
events = ','.join(f'sched:{e}' for e in ('sched_switch', 'sched_wakeup', 'sched_wakeup_new', 'sched_migrate_task',
                                         'sched_process_fork', 'sched_process_exit'))
procs, pids = workload(120)
live = subprocess.Popen([INLAY, 'runqslower', '-d', '60', '-c', 'rqs-*', '--json', '1ms'], stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE)
live.stderr.readline()    # it is attached
try:
    rec = subprocess.run(['perf', 'record', '-q', '-a', '-k', 'CLOCK_MONOTONIC', '-m', '4096', '-e', events, '-o', perf, '--',
                          'sleep', '3'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    recorded = rec.returncode == 0
except OSError:
    recorded = False
time.sleep(0.3)
live.send_signal(signal.SIGINT)
out = live.communicate()[0].decode(errors='surrogateescape')
finish(procs)
if recorded:
    live_rows, _, live_sum = rows_of(out)
    p = inlay('runqslower', '-i', perf, '-c', 'rqs-*', '--json', '1ms')
    rec_rows, _, rec_sum = rows_of(p.out)
    lo, hi = rec_sum['start_ns'] + 10**8, rec_sum['end_ns'] - 10**8

    def inside(rows):
        return [r for r in rows if lo < r['ts_ns'] - r['wait_ns'] and r['ts_ns'] < hi and r['wait_ns'] > 1.1 * 10**6]

    by_key = collections.defaultdict(list)
    for r in live_rows:
        by_key[r['tid'], r['cpu']].append(r)

    def twin(r, pool):
        """The same wait: clocks are read within microseconds of each other, unless an interrupt comes between."""
        return [x for x in pool if x['tid'] == r['tid'] and x['cpu'] == r['cpu'] and abs(x['ts_ns'] - r['ts_ns']) < 2 * 10**5 and
                abs(x['wait_ns'] - r['wait_ns']) < 4 * 10**5]

    a = inside(rec_rows)
    b = inside(live_rows)
    missing = [r for r in a if not twin(r, live_rows)]
    extra = [r for r in b if not twin(r, rec_rows)]
    lost = rec_sum['lost'] + live_sum['lost']
    ok(len(a) >= 20 and len(missing) <= lost, f'{len(a)} waits perf recorded are rows of the live run ({lost} lost)',
       len(a), missing[:3])
    ok(len(b) >= 20 and len(extra) <= lost, f'{len(b)} rows of the live run are in perf\'s recording', len(b), extra[:3])
    same = sum(twin(r, live_rows)[0]['kind'] == r['kind'] for r in a if twin(r, live_rows))
    ok(same >= 0.98 * len(a), 'and their kinds are the same', same, len(a))
else:
    skip('beside perf', 'perf cannot record here')
done()

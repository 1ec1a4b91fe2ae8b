#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The live run beside perf, and what it costs beside Debian's libbpf-tools.

rows      A workload of its own (pinned spinners, sleepers, one that is moved, one that forks) is recorded by perf while
          `inlay runqslower --json 0` runs live. tests/independent/waits.py computes the waits from perf's text. Those of the
          workload's tasks, in the time both saw, are matched by task, CPU, end and wait.
overhead  `perf bench sched pipe` on one CPU, at real-time priority so that others' work on the machine is not measured, with
          inlay live and with /usr/sbin/runqslower live, in turn, each at a threshold of 10 ms.

    live_overhead.py [rows|overhead]     needs root, bpf(2), perf; looks only at tasks that it started

Both readers of an event take their own time stamp, so times may differ by TOLERANCE; more only if an interrupt (or a host
that takes the CPU away) comes between the two, which is what the missing hundredth of MATCHED is for. Waits that perf
itself could not compute, as it had missed the enqueue, are known from its text, and what either side counts as lost is allowed.
"""
import collections
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from lib import INLAY, WAITS, done, ok, own_pid_namespace, run, skip, skip_all

sys.path.insert(0, os.path.dirname(WAITS))
import waits as independent  # noqa: E402

TOLERANCE = 100_000        # ns between the two readers of one event
MIN_NS = 500_000           # rows of this length at least are compared
MATCHED = 0.99
AT_LEAST = 100             # rows; fewer prove nothing
LOOPS = 200_000            # of perf bench sched pipe
PAIRS = 11
EVENTS = ','.join(f'sched:sched_{e}' for e in ('switch', 'wakeup', 'wakeup_new', 'migrate_task', 'process_fork',
                                               'process_exit'))
WORKER = '''
import os, sys, time
name, nap, spin, cpu, until = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
with open('/proc/self/comm', 'w') as f:
    f.write(name)
os.sched_setaffinity(0, [cpu])
turn = 0
end = time.monotonic() + until
while time.monotonic() < end:
    turn += 1
    if nap:
        time.sleep(nap)
    for i in range(spin):
        pass
    if name.endswith('fork') and turn % 10 == 0:
        pid = os.fork()
        if not pid:
            for i in range(20000):
                pass
            os._exit(0)
        print(pid, flush=True)
        os.waitpid(pid, 0)
'''


class Workload:
    def __init__(self, seconds):
        cpus = sorted(os.sched_getaffinity(0))
        self.procs = [subprocess.Popen([sys.executable, '-c', WORKER, f'goal-{name}', str(nap), str(spin), str(cpus[-1]),
                                        str(seconds)], stdout=subprocess.PIPE)
                      for name, nap, spin in (
                          ('hog1', 0, 50000), ('hog2', 0, 50000), ('nap', 0.003, 500), ('long-nap', 0.02, 20000),
                          ('roam', 0, 50000), ('fork', 0.002, 500))]
        self.tids = {p.pid for p in self.procs}
        self.cpus, self.roamer, self.over = cpus, self.procs[4], False
        self.mover = threading.Thread(target=self.move)
        self.mover.start()

    def move(self):
        """From outside, so that it is moved while it waits, too."""
        turn = 0
        while not self.over and self.roamer.poll() is None:
            turn += 1
            try:
                os.sched_setaffinity(self.roamer.pid, [self.cpus[-1 - turn % min(2, len(self.cpus))]])
            except ProcessLookupError:
                return
            time.sleep(0.007)

    def started(self):
        for pid in self.tids:
            for _ in range(1000):
                with open(f'/proc/{pid}/comm') as f:
                    if f.read().startswith('goal-'):
                        break
                time.sleep(0.01)

    def end(self):
        self.over = True
        self.mover.join()
        for p in self.procs:
            p.terminate()
        for p in self.procs:
            out, _ = p.communicate()
            self.tids.update(int(pid) for pid in out.split())


class Interrupted(RuntimeError):
    """Somebody else on this machine ended the tool by its name."""


class Live:
    """A tool that is attached when __enter__ returns, and ended in order by __exit__."""

    def __init__(self, args, out=subprocess.DEVNULL):
        self.p = subprocess.Popen(args, stdout=out, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def links(self):
        fdinfo = f'/proc/{self.p.pid}/fdinfo'
        count = 0
        try:
            for fd in os.listdir(fdinfo):
                with open(os.path.join(fdinfo, fd)) as f:
                    count += 'link_type:' in f.read()
        except OSError:
            pass
        return count

    def __enter__(self):
        before = -1
        for _ in range(600):
            time.sleep(0.1)
            count = self.links()
            status = self.p.poll()
            if status is not None:
                what = Interrupted if status in (-signal.SIGINT, -signal.SIGTERM) else RuntimeError
                raise what(f'{self.p.args[0]} ended with status {status}')
            if count >= 3 and count == before:
                return self
            before = count
        raise RuntimeError(f'{self.p.args[0]} did not attach')

    def __exit__(self, *exc):
        self.p.send_signal(signal.SIGINT)
        self.p.wait(timeout=60)


def possible():
    if os.geteuid():
        return 'needs root'
    if own_pid_namespace():
        return 'in a pid namespace of its own nobody knows which of the recorded tasks are its own'
    if not shutil.which('perf'):
        return 'perf is not installed'
    p = run('runqslower', '-d', '100ms', '10s')
    if p.rc:
        return f'no live run here: {(p.err.strip().splitlines() or ["?"])[-1]}'
    p = subprocess.run(['perf', 'record', '-q', '-e', 'sched:sched_switch', '-o', '/dev/null', '--', 'true'],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return None if not p.returncode else f'perf cannot record here: {(p.stdout.strip().splitlines() or ["?"])[-1]}'


# ---- rows

def perf_text(data, to):
    """perf's own text of its recording; the number of events it lost."""
    with open(to, 'w') as f:
        subprocess.run(['perf', 'script', '--ns', '-F', 'comm,tid,cpu,time,event,trace', '-i', data], stdout=f,
                       stderr=subprocess.DEVNULL, check=True)
    stats = subprocess.run(['perf', 'script', '--show-lost-events', '-F', 'comm,tid,time,event', '-i', data],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return sum(int(n) for n in re.findall(r'PERF_RECORD_LOST lost (\d+)', stats))


def switched_in(text, tids):
    """(tid, time) of every switch to one of the tasks."""
    seen = collections.defaultdict(list)
    for e in text.events:
        if e.name == 'sched_switch':
            tid = text.switch(e.body)[3]
            if tid in tids:
                seen[tid].append(e.ts)
    return seen


def seen_whole(text, cpus):
    """perf opens and closes its buffers one CPU after the other: from when to when did it see all of these?"""
    first, last = {}, {}
    for e in text.events:
        if e.cpu not in cpus:
            continue
        first.setdefault(e.cpu, e.ts)
        last[e.cpu] = e.ts
    return max(first.values()) + TOLERANCE, min(last.values()) - TOLERANCE


def near(times, ts):
    return any(abs(t - ts) <= TOLERANCE for t in times)


def match(ours, theirs):
    """Pairs each row of ours with the one of theirs of the same task and CPU that ends and lasts as long, within TOLERANCE.
    -> (pairs, alone of ours, alone of theirs)"""
    pool = collections.defaultdict(list)
    for row in theirs:
        pool[row['tid'], row['cpu']].append(row)
    pairs, alone = [], []
    for row in ours:
        some = pool[row['tid'], row['cpu']]
        best = min(some, key=lambda r: abs(r['ts_ns'] - row['ts_ns']), default=None)
        if best and abs(best['ts_ns'] - row['ts_ns']) <= TOLERANCE and abs(best['wait_ns'] - row['wait_ns']) <= TOLERANCE:
            some.remove(best)
            pairs.append((row, best))
        else:
            alone.append(row)
    return pairs, alone, [row for some in pool.values() for row in some]


def record(tmp, seconds=4):
    """Live rows and perf's recording of the same time: (live objects, perf.data, the workload's tids)"""
    rows, data = os.path.join(tmp, 'rows.json'), os.path.join(tmp, 'perf.data')
    work = Workload(seconds + 60)
    try:
        work.started()
        with open(rows, 'w') as f, Live([INLAY, 'runqslower', '--json', '0'], f):
            p = subprocess.run(['perf', 'record', '-q', '-a', '-k', 'CLOCK_MONOTONIC', '-m', '4096', '-e', EVENTS, '-o', data,
                                '--', 'sleep', str(seconds)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if p.returncode:
                raise RuntimeError(f'perf record: {p.stdout}')
    finally:
        work.end()
    with open(rows, errors='surrogateescape') as f:
        return [json.loads(line) for line in f], data, work.tids


def rows_equal(tmp):
    live, data, tids = record(tmp)
    summary = live.pop()['summary']
    text_path = os.path.join(tmp, 'perf.txt')
    perf_lost = perf_text(data, text_path)
    text = independent.Text(text_path)
    computed = [{k: r[k] for k in ('ts_ns', 'comm', 'tid', 'cpu', 'wait_ns', 'kind')} for r in independent.Waits(text).rows]
    first, last = seen_whole(text, {r['cpu'] for r in computed if r['tid'] in tids})

    def inside(rows):
        """Waits of the workload that began and ended while both were looking."""
        return [r for r in rows if r['tid'] in tids and 'open' not in r and first < r['ts_ns'] - r['wait_ns'] and
                r['ts_ns'] < last]
    ours, theirs = inside(computed), inside(live)
    pairs, missing, extra = match(ours, theirs)
    over = [p for p in pairs if p[0]['wait_ns'] > MIN_NS]
    # perf had missed the enqueue: it saw the switch, and computed no wait that ends there
    ends = collections.defaultdict(list)
    for r in computed:
        ends[r['tid']].append(r['ts_ns'])
    ins = switched_in(text, tids)
    unseen = [r for r in extra if near(ins[r['tid']], r['ts_ns']) and not near(ends[r['tid']], r['ts_ns'])]
    unseen_ids = {id(r) for r in unseen}
    extra = [r for r in extra if id(r) not in unseen_ids]
    long_missing = [r for r in missing if r['wait_ns'] > MIN_NS + TOLERANCE]
    long_extra = [r for r in extra if r['wait_ns'] > MIN_NS + TOLERANCE]
    # a time stamp that an interrupt delayed: the same switch in both, but for more than the tolerance
    late, _, _ = match_late(long_missing, long_extra)
    lost = summary['lost'] + summary['missed'] + summary['storage_failures']
    wanted = len([r for r in ours if r['wait_ns'] > MIN_NS])
    ok(wanted >= AT_LEAST and len({r['tid'] for r in ours}) >= 6,
       f'perf recorded {wanted} waits over {MIN_NS / 1e6} ms, {len(ours)} of any length, of {len({r["tid"] for r in ours})} tasks',
       len(ours), wanted)
    ok(len(pairs) >= MATCHED * len(ours), f'{len(pairs)} of {len(ours)} waits are matched one to one by live rows '
       f'({100 * len(pairs) / max(1, len(ours)):.2f} %)', *missing[:5], *extra[:5])
    ok(len(over) >= MATCHED * wanted, f'{len(over)} of {wanted} waits over {MIN_NS / 1e6} ms are', *long_missing[:5])
    ok(len(long_missing) <= perf_lost + lost + late, f'none over it is missing but for losses ({len(long_missing)}; live: {lost} '
       f'lost or missed; perf: {perf_lost} lost; {late} with a delayed time stamp)', *long_missing[:5])
    ok(len(long_extra) <= perf_lost + late, f'none over it is extra but for losses ({len(long_extra)}; perf: {perf_lost} lost, '
       f'{len(unseen)} more enqueues missed)', *long_extra[:5])
    ok(late <= (1 - MATCHED) * wanted + 1, f'time stamps more than {TOLERANCE / 1000:.0f} us apart: {late}', late)
    kinds = [p for p in over if p[0]['kind'] != p[1]['kind']]
    ok(not kinds, 'their kinds are the same', *kinds[:5])
    found = collections.Counter(p[0]['kind'] for p in pairs)
    ok({'woken', 'new', 'migrated'} <= set(found) and {'preempted', 'requeued'} & set(found), f'of every kind: {dict(found)}')
    # and inlay on perf's file says what the independent script says
    p = run('runqslower', '-i', data, '--json', '0')
    replayed = [r for r in map(json.loads, p.out.splitlines()) if r.get('tid') in tids and 'open' not in r]
    keys = [sorted((r['ts_ns'], r['tid'], r['cpu'], r['wait_ns'], r['kind']) for r in some)
            for some in (replayed, [r for r in computed if r['tid'] in tids])]
    differ = set(keys[0]) ^ set(keys[1])
    ok(p.rc == 0 and keys[0] == keys[1], f'a replay of perf\'s file gives the {len(keys[1])} rows of the independent script',
       p.err, *sorted(differ)[:6])


def match_late(missing, extra):
    """Pairs of the same task, CPU and (within 10 ms) end: (how many, the rest of both)"""
    left, found = list(extra), 0
    for r in list(missing):
        twin = next((x for x in left if x['tid'] == r['tid'] and x['cpu'] == r['cpu'] and
                     abs(x['ts_ns'] - r['ts_ns']) < 10_000_000), None)
        if twin:
            left.remove(twin)
            found += 1
    return found, missing, left


# ---- overhead

def bench(cpu):
    p = subprocess.run(['taskset', '-c', str(cpu), 'chrt', '-f', '1', 'perf', 'bench', '--format=simple', 'sched', 'pipe', '-l',
                        str(LOOPS)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if p.returncode:
        raise RuntimeError(f'perf bench: {p.stderr}')
    return float(p.stdout.split()[-1])


def bench_with(tool, cpu):
    for again in (True, True, False):
        try:
            with Live(tool):
                return bench(cpu)
        except Interrupted:
            if not again:
                raise


def overhead():
    debian = '/usr/sbin/runqslower'
    if not os.access(debian, os.X_OK):
        skip("overhead", f"{debian} is not there: apt-get install libbpf-tools")
        return
    cpu = sorted(os.sched_getaffinity(0))[-1]
    tools = {'inlay': [INLAY, 'runqslower', '10ms'], 'libbpf-tools': [debian, '10000']}
    took = {name: [] for name in ('none', *tools)}
    bench(cpu)
    for pair in range(PAIRS):
        took['none'].append(bench(cpu))
        for name in list(tools) if pair % 2 else list(tools)[::-1]:
            took[name].append(bench_with(tools[name], cpu))
    mid = {name: statistics.median(times) for name, times in took.items()}
    for name, times in took.items():
        print(f'# {name}: median {mid[name]:.3f} s of {" ".join(f"{t:.3f}" for t in times)}')
    ratio = mid['inlay'] / mid['libbpf-tools']
    cost = {name: (mid[name] / mid['none'] - 1) * 100 for name in tools}
    ok(ratio <= 1.0, f'perf bench sched pipe, {LOOPS} round trips, {PAIRS} pairs: inlay {mid["inlay"]:.3f} s '
       f'({cost["inlay"]:+.1f} %), libbpf-tools {mid["libbpf-tools"]:.3f} s ({cost["libbpf-tools"]:+.1f} %), ratio {ratio:.3f}, '
       'wanted at most 1.000')


def main():
    what = sys.argv[1:] or ['rows', 'overhead']
    why = possible()
    if why:
        skip_all(why)
    with tempfile.TemporaryDirectory(prefix='inlay-live-') as tmp:
        if 'rows' in what:
            rows_equal(tmp)
        if 'overhead' in what:
            overhead()
    done()


if __name__ == '__main__':
    main()

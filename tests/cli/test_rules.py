#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Rules of runqslower on recordings written for the purpose: losses, placement by the waker, events of one instant."""
import json
import os
import re
import sys
import tempfile

from tapcli import SOURCE, done, equal, inlay, ok, rows_of

sys.path.insert(0, os.path.join(SOURCE, 'tests', 'replay'))
import recwriter as w  # noqa: E402

folder = tempfile.TemporaryDirectory(prefix='inlay-rules-')  # gone with the process
tmp = folder.name
L = w.Layout()
START = 1_000_000_000


def recording(name, data):
    path = os.path.join(tmp, name)
    with open(path, 'wb') as f:
        f.write(data)
    return path


def switch(ts, cpu, prev, nxt, state='S'):
    return dict(ts=ts, cpu=cpu, tid=prev, tgid=prev, kind='sched_switch', prev_comm=f't{prev}', prev_pid=prev,
                prev_prio=120, prev_state=state, next_comm=f't{nxt}', next_pid=nxt, next_prio=120)


def wake(kind, ts, cpu, waker, tid, target):
    return dict(ts=ts, cpu=cpu, tid=waker, tgid=waker, kind=kind, comm=f't{tid}', pid=tid, prio=120,
                target_cpu=target, success=1)


def migrate(ts, cpu, by, tid, orig, dest):
    return dict(ts=ts, cpu=cpu, tid=by, tgid=by, kind='sched_migrate_task', comm=f't{tid}', pid=tid, prio=120,
                orig_cpu=orig, dest_cpu=dest)


def kinds(path, *more):
    p = inlay('runqslower', '-i', path, '--json', *more, '0')
    rows, _, _ = rows_of(p.out)
    return {(r['tid'], r['kind']) for r in rows}, p


# --- the waker places a task after sched_waking: no migration; a move after its CPU has switched is one

placed = [
    switch(START, 0, 0, 10),
    switch(START + 1000, 1, 0, 11),
    wake('sched_waking', START + 2000, 0, 10, 20, 1),
    migrate(START + 2100, 0, 10, 20, 0, 1),
    switch(START + 900_000, 1, 11, 20, 'R'),
    wake('sched_waking', START + 1_000_000, 0, 10, 30, 0),
    switch(START + 1_100_000, 0, 10, 12, 'R'),
    migrate(START + 1_200_000, 0, 12, 30, 0, 1),
    switch(START + 1_900_000, 1, 20, 30),
]
for storage in ('task', 'hash', 'hash-noprealloc'):
    got, p = kinds(recording('placed', w.perf_data(placed, L)), '--metric', 'waking', '--storage', storage)
    ok((20, 'woken') in got and (20, 'migrated') not in got,
       f"{storage} storage: the waker's own placement is no migration", got, p.err)
    ok((30, 'migrated') in got and (30, 'woken') not in got,
       f'{storage} storage: a move after the waker has left the CPU is one', got, p.err)

# --- an open row whose CPU was idle meanwhile is to be doubted: nobody saw the task being queued, or switched in

idle = [
    switch(START, 0, 5, 10),
    switch(START, 1, 6, 0),
    switch(START + 5_000_000, 0, 10, 20),   # busy all along: 20 did wait
    switch(START + 6_000_000, 1, 0, 30),    # idle all along: 30's wake-up was missed, or it was throttled
    wake('sched_wakeup', START + 6_500_000, 1, 30, 40, 1),
    switch(START + 7_000_000, 1, 30, 0),    # idle, though 40 was woken
    wake('sched_wakeup', START + 7_500_000, 0, 20, 50, 0),
    switch(START + 12_000_000, 0, 20, 21, 'R'),
]
path = recording('idle', w.perf_data(idle, L))
p = inlay('runqslower', '-i', path, '--json', '0')
found = {r['tid']: (r['kind'], r.get('open'), r.get('doubtful', False)) for r in rows_of(p.out)[1]}
for tid, want in ((20, ('queued', 'start', False)), (30, ('queued', 'start', True)), (40, ('woken', 'end', True)),
                  (50, ('woken', 'end', False))):
    equal(found.get(tid), want, f'task {tid}: {want}')
p = inlay('runqslower', '-i', path, '0')
ok(re.search(r'^ *\S+ t30 .*≥ +6\.000 ms queued\? +swapper/1 6\.000 ms$', p.out, re.M) and
   re.search(r'^ *\S+ t20 .*≥ +5\.000 ms queued +t10/10 5\.000 ms$', p.out, re.M), 'in text a ? is behind the kind', p.out, p.err)

# --- losses fail the job when more are lost than allowed

lossy = list(placed)
lossy.insert(3, dict(ts=START + 2050, cpu=0, tid=1, tgid=1, kind='lost', count=12))
path = recording('lossy', w.perf_data(lossy, L))
for opts, rc in (((), 0), (('--max-lost', '0'), 1), (('--max-lost', '11'), 1), (('--max-lost', '12'), 0)):
    p = inlay('runqslower', '-i', path, '--json', *opts, '0')
    equal(p.rc, rc, f'12 lost events, {" ".join(opts) or "no option"}: exit status {rc}')
    ok(json.loads(p.out.splitlines()[-1])['summary']['lost'] == 12, 'the summary counts them', p.out[-300:])
    ok(('more events were lost' in p.err) == bool(rc), 'and the reason is on stderr when it fails', p.err)
equal(inlay('runqslower', '-i', recording('whole', w.perf_data(placed, L)), '--json', '0').rc, 0, 'no loss: exit status 0')

# --- events of one instant on one CPU keep the order of the file

same = [
    switch(START, 0, 0, 10),
    wake('sched_wakeup', START + 1000, 0, 10, 20, 0),
    switch(START + 5000, 0, 10, 20, 'R'),
    switch(START + 5000, 0, 20, 30, 'R'),
    switch(START + 5000, 0, 30, 20, 'R'),
    switch(START + 8000, 0, 20, 10),
]
for kw in (dict(), dict(rounds=False), dict(pipe=True), dict(compress=True)):
    p = inlay('runqslower', '-i', recording('same', w.perf_data(same, L, **kw)), '--json', '0')
    rows, _, _ = rows_of(p.out)
    got = [(r['tid'], r['wait_ns'], [x['tid'] for x in r['ran']]) for r in rows if r['tid'] in (10, 20)]
    equal(got, [(20, 4000, [10]), (20, 0, []), (10, 3000, [20])],
          f'perf.data {" ".join(kw)}: switches of one instant are taken in the order they stand')

# --- and so do events of one instant on two CPUs; in the file CPU 1's come first

both = [
    switch(START, 0, 0, 10),
    switch(START + 100, 1, 0, 11),
    wake('sched_wakeup', START + 5000, 1, 11, 20, 0),
    switch(START + 5000, 0, 10, 20),
    switch(START + 6000, 0, 20, 10),
    wake('sched_wakeup', START + 7000, 1, 11, 21, 0),
    switch(START + 7000, 0, 10, 21),
]
for kw in (dict(), dict(rounds=False), dict(pipe=True), dict(compress=True)):
    p = inlay('runqslower', '-i', recording('both', w.perf_data(both, L, **kw)), '--json', '0')
    rows, _, summary = rows_of(p.out)
    equal(sorted((r['tid'], r['wait_ns']) for r in rows if r['tid'] in (20, 21)), [(20, 0), (21, 0)],
          f'perf.data {" ".join(kw)}: events of one instant on two CPUs are taken in the order they stand')
done()

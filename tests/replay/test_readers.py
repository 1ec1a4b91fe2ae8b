# SPDX-License-Identifier: BSD-2-Clause
"""Every reader gives the same events for the same workload, whatever the variant of its format."""
import lzma
import os
import subprocess

import recwriter as w
from reclib import DIR, dump, info, differ, put, which
from tap import done, ok, skip

EVENTS = w.workload()
TRACED = [e for e in EVENTS if e['kind'] != 'other']


def expect(events, **kw):
    return [w.dump(e, **kw) for e in events if e['kind'] != 'other']


def check(name, data, want, opts=(), ext='bin'):
    st, out, err = dump(put('t.' + ext, data), *opts)
    return ok(st == 0 and len(want) > 100 and not differ(want, out), name, err + differ(want, out))


# ---- trace.dat

for version, squeeze in ((6, None), (7, None), (7, True)):
    for long_size in (8, 4):
        for big in (False, True):
            L = w.Layout(long_size, big)
            check('trace.dat v%d%s, %d-bit, %s-endian' % (version, ' zstd' if squeeze else '', long_size * 8,
                                                          'big' if big else 'little'),
                  w.trace_dat(EVENTS, L, version, squeeze), expect(EVENTS, tgid=False, group_dead=False))
for kw, what in ((dict(moved=True), 'fields in another order'), (dict(data_loc=True), 'comm as __data_loc'),
                 (dict(data_loc=True, rel_loc=True), 'comm as __rel_loc'), (dict(success=True), 'a success field'),
                 (dict(moved=True, data_loc=True, long_size=4, big=True), 'all of it, 32-bit big-endian')):
    L = w.Layout(**kw)
    check('trace.dat with ' + what, w.trace_dat(EVENTS, L), expect(EVENTS, tgid=False, group_dead='data_loc' in kw))
L = w.Layout()
sparse = [dict(e, cpu=[0, 3, 200, 511][e['cpu']]) for e in EVENTS]
for version in (6, 7):
    check('trace.dat v%d with CPU numbers up to 511 and gaps between' % version, w.trace_dat(sparse, L, version),
          expect(sparse, tgid=False, group_dead=False))
check('trace.dat with 64 KiB pages', w.trace_dat(EVENTS, L, page=65536), expect(EVENTS, tgid=False, group_dead=False))
check('trace.dat v7 with everything in an instance', w.trace_dat(EVENTS, L, 7, instance_only=True),
      expect(EVENTS, tgid=False, group_dead=False))
i, _ = info(put('t.dat', w.trace_dat(EVENTS, L, clock='local global [mono] boot')))
ok(i['clock'] == 'mono' and i['host'] == 'Linux box 5.10' and i['format'] == 'trace.dat v6',
   'trace.dat: clock, uname and version are reported', i)
ok(i['tgids_known'] == 0 and i['nr_cpus'] == 4 and i['ts_unit_ns'] == 1, 'trace.dat: no tgids, CPUs, unit', i)
counts = {k: sum(e['kind'] == k for e in EVENTS) for k in w.KINDS + ['other']}
for fmt, data in (('trace.dat', w.trace_dat(EVENTS, L)), ('perf.data', w.perf_data(EVENTS, L)),
                  ('text', w.text(EVENTS, 'script'))):
    i, _ = info(put('t', data))
    ok(all(i[k] == n for k, n in counts.items()) and i['first_ts'] == EVENTS[0]['ts'] and
       i['last_ts'] == EVENTS[-1]['ts'], fmt + ': counts and first and last time are known at open', i)
    st, out, err = dump(put('t', data), '-o')
    ok(sum(' other' in l for l in out) == counts['other'] and len(out) == len(EVENTS),
       fmt + ': other events are handed out on request', len(out))
few = [e for e in EVENTS if e['kind'] in ('sched_switch', 'other')]
for fmt, data in (('trace.dat', w.trace_dat(few, L)), ('text', w.text(few, 'ftrace'))):
    i, _ = info(put('t', data))
    ok(i['recorded.sched_switch'] == 1 and i['recorded.sched_wakeup'] == 0 and i['recorded.sched_waking'] == 0,
       fmt + ': a recording without wake-ups says so', i)
i, _ = info(put('t', w.perf_data(few, L)))
ok(i['recorded.sched_wakeup'] == 1 and i['sched_wakeup'] == 0, 'perf.data: an event switched on that never came', i)

# ---- perf.data

PE = dict(group_dead=False)
for name, st in (('the default', w.DEFAULT), ('ID instead of IDENTIFIER', (w.DEFAULT | w.ID) & ~w.IDENTIFIER),
                 ('IDENTIFIER and ID and STREAM_ID', w.DEFAULT | w.ID | w.STREAM_ID),
                 ('ADDR', w.DEFAULT | w.ADDR), ('CALLCHAIN', w.DEFAULT | w.CALLCHAIN),
                 ('only what is needed', w.TID | w.TIME | w.CPU | w.RAW | w.IDENTIFIER),
                 ('no IP and no PERIOD, CALLCHAIN', w.TID | w.TIME | w.CPU | w.RAW | w.CALLCHAIN | w.IDENTIFIER),
                 ('everything', w.DEFAULT | w.ADDR | w.ID | w.STREAM_ID | w.CALLCHAIN | w.BRANCH_STACK | w.REGS_USER |
                  w.STACK_USER | w.WEIGHT | w.DATA_SRC | w.TRANSACTION | w.REGS_INTR | w.PHYS_ADDR)):
    check('perf.data with sample type: ' + name, w.perf_data(EVENTS, L, st), expect(EVENTS, **PE))
check('perf.data without any ids, one sample type', w.perf_data(EVENTS, L, w.DEFAULT & ~w.IDENTIFIER, dummy=False),
      expect(EVENTS, **PE))
for rf in (0, 4, 16, 20, 3, 7, 15, 31, 12, 28):
    check('perf.data with READ values, read_format %d' % rf, w.perf_data(EVENTS, L, w.DEFAULT | w.READ, rf),
          expect(EVENTS, **PE))
check('perf.data in pipe mode', w.perf_data(EVENTS, L, pipe=True), expect(EVENTS, **PE))
check('perf.data with compressed records, cut anywhere', w.perf_data(EVENTS, L, compress=True), expect(EVENTS, **PE))
check('perf.data in pipe mode, compressed', w.perf_data(EVENTS, L, pipe=True, compress=True), expect(EVENTS, **PE))
check('perf.data without rounds is sorted as a whole', w.perf_data(EVENTS, L, rounds=False, chunk=100),
      expect(EVENTS, **PE))
check('perf.data of one chunk an event', w.perf_data(EVENTS, L, chunk=1), expect(EVENTS, **PE))
check('perf.data with old, short attributes', w.perf_data(EVENTS, L, attr_size=64), expect(EVENTS, **PE))
check('perf.data with long attributes of the future', w.perf_data(EVENTS, L, attr_size=256), expect(EVENTS, **PE))
check('perf.data with moved fields and __data_loc', w.perf_data(EVENTS, w.Layout(moved=True, data_loc=True)),
      expect(EVENTS))
check('perf.data of a 32-bit kernel', w.perf_data(EVENTS, w.Layout(4)), expect(EVENTS, **PE))
check('perf.data with CPU numbers up to 511', w.perf_data(sparse, L), expect(sparse, **PE))
stray = b''.join(w.record(t, b'\0' * 40) for t in (1, 10, 12, 17, 18, 20, 69, 79, 82, 200))
stray += w.record(71, struct_aux := b'\x10' + b'\0' * 31) + b'\xee' * 16
check('perf.data: records of other kinds, AUXTRACE with its data too, are stepped over',
      w.perf_data(EVENTS, L, extra=stray), expect(EVENTS, **PE))
for i, e in enumerate(TRACED):
    e['cgroup'] = 7 + i % 2
    e['cgroup_path'] = ['/', '/user.slice/app'][i % 2]
cg = dict(cgroups={7: '/', 8: '/user.slice/app'})
check('perf.data with cgroups, behind every other part of a sample',
      w.perf_data(EVENTS, L, w.DEFAULT | w.CGROUP | w.CALLCHAIN | w.BRANCH_STACK | w.REGS_USER | w.STACK_USER |
                  w.WEIGHT | w.DATA_SRC | w.TRANSACTION | w.REGS_INTR | w.PHYS_ADDR, **cg), expect(EVENTS, **PE))
for e in TRACED:
    del e['cgroup'], e['cgroup_path']

# COMM and FORK give tgids; the fork event gets its child's
tasky = []
for e in w.workload(seed=7):
    if e['kind'] == 'sched_process_fork':
        tasky.append(dict(ts=e['ts'] - 1, cpu=e['cpu'], tid=e['tid'], tgid=e['tgid'], kind='task', born=True, comm='',
                          task_tid=e['child_pid'], task_tgid=e['child_pid'] - 1))
        e['child_tgid'] = e['child_pid'] - 1
    tasky.append(e)
tasky.insert(0, dict(ts=tasky[1]['ts'], at=0, cpu=0, tid=1, tgid=1, kind='task', comm='pre', task_tid=55, task_tgid=50))
st, out, err = dump(put("t", w.perf_data(tasky, L)))
want = expect([e for e in tasky], group_dead=False, child_tgid=True)
want[0] = w.dump(dict(tasky[0], ts=min(e['ts'] for e in tasky if e['kind'] not in ('other', 'task'))))
ok(out[0].split('task')[1] == want[0].split('task')[1] and not differ(want[1:], out[1:]) and
   sum(' task ' in l for l in out) > 5, 'perf.data: COMM and FORK become task events, forks know their tgid',
   err + differ(want, out))

# ---- text

NOCH = [c for c in w.COMMS if ' prev_pid' not in c]
for style in ('script', 'script-pid', 'script-bare', 'script-chain', 'script-period', 'ftrace', 'ftrace-nofl',
              'ftrace-tgid', 'plugin', 'raw'):
    for digits, unit in ((9, 1), (6, 1000)):
        evs = w.workload(states=['R', 'R+', 'S', 'D', 'T', 'X', 'x', 'D|K'] if style == 'raw' else None)
        if style == 'plugin':
            for e in evs:  # a plugin line does not say where the comm of a fork ends
                pass
        comm = 'odd [7] name-3' if style != 'script-pid' else 'odd 1/2 name'
        data = w.text(evs, style, digits, '4.8', comm)
        # group_dead is in the kernel's text
        want = expect(evs, tgid=style in ('script-pid', 'ftrace-tgid'), tid=style != 'script-bare', unit=unit)
        check('text: %s with %d digits' % (style, digits), data, want)
data = w.text(EVENTS, 'script').replace(b'\n', b'\r\n')
check('text with carriage returns', data, expect(EVENTS, tgid=False))
check('text whose last line has no newline', w.text(EVENTS, 'script')[:-1], expect(EVENTS, tgid=False))
i, _ = info(put('t', w.text(EVENTS, 'ftrace-tgid', 6)))
ok(i['tgids_known'] == 1 and i['ts_unit_ns'] == 1000 and i['format'] == 'ftrace text', 'text: tgids, unit, form', i)
i, _ = info(put('t', w.text(EVENTS, 'plugin', 9)))
ok(i['tgids_known'] == 0 and i['ts_unit_ns'] == 1 and i['format'] == 'trace-cmd report text', 'text: of trace-cmd', i)
old = b'  foo-1 [000] 1.000001: sched_wakeup: comm=a pid=5 prio=120 success=0 target_cpu=000\n' \
      b'  foo-1 [000] 1.000002: sched_wakeup: comm=a pid=5 prio=120 success=1 target_cpu=000\n'
i, _ = info(put('t', old))
ok(i['sched_wakeup'] == 1 and i['other'] == 1, 'text: a wake-up without success is none', i)
for big in (0, 1):
    L2 = w.Layout(success=True, big=bool(big))
    evs = w.workload()
    for n, e in enumerate(evs):
        if 'success' in e:
            e['success'] = n % 2
    want = [w.dump(e, tgid=False, group_dead=False) for e in evs if e['kind'] != 'other' and e.get('success', 1)]
    check('trace.dat: wake-ups without success are none, %d' % big, w.trace_dat(evs, L2), want)
    if not big:
        want = [w.dump(e, group_dead=False) for e in evs if e['kind'] != 'other' and e.get('success', 1)]
        check('perf.data: wake-ups without success are none', w.perf_data(evs, L2), want)

# ---- the input's wrapping

plain = w.perf_data(EVENTS, L)
want = expect(EVENTS, **PE)
wraps = [('gzip', w.gz(plain)), ('xz', lzma.compress(plain)), ('zstd', w.Zstd().compress(plain))]
for name, data in wraps:
    st, out, err = dump(put('misleading.name', data))
    i, _ = info(put('misleading.name', data))
    ok(not differ(want, out) and i['compression'] == name, 'inside %s, whatever the file is called' % name, err)
    st, out, err = dump('-', stdin=data)
    ok(not differ(want, out), 'inside %s, from a pipe' % name, err)
st, out, err = dump(put('t', w.gz(plain[:5000]) + w.gz(plain[5000:])))
ok(not differ(want, out), 'gzip of two members', err)
st, out, err = dump(put('t', lzma.compress(plain[:5000]) + lzma.compress(plain[5000:])))
ok(not differ(want, out), 'xz of two streams', err)
z = w.Zstd()
st, out, err = dump(put('t', z.compress(plain[:5000]) + z.compress(plain[5000:])))
ok(not differ(want, out), 'zstd of two frames', err)
st, out, err = dump(put('t', w.gz(lzma.compress(plain))))
ok(not differ(want, out), 'xz inside gzip', err)
for name, data in (('perf.data', plain), ('trace.dat', w.trace_dat(EVENTS, L)), ('text', w.text(EVENTS, 'script')),
                   ('pipe-mode perf.data', w.perf_data(EVENTS, L, pipe=True))):
    st, out, err = dump('-', stdin=data)
    ok(st == 0 and len(out) == len(TRACED), name + ' from a pipe', err)
    with open(put('t', data), 'rb') as f:
        r = subprocess.run([os.environ.get('REC_DUMP') or __import__('sys').argv[1], '-'], stdin=f,
                           stdout=subprocess.PIPE)
    ok(len(r.stdout.splitlines()) == len(TRACED), name + ' from a redirected file')

# ---- states, by kernel

for era, table in w.ERAS.items():
    states = ['R', 'R+', 'S', 'D', 'T', 't', 'X', 'Z'] + [c for c in table if c in 'PxIKWN']
    if 'N' in table:
        states.append('D|N')
    if 'K' in table:
        states.append('D|K')
    evs = w.workload(states=states, seed=3)
    for style in ('hex', 'decimal'):
        check('trace.dat: states of %s, %s print format' % (era, style),
              w.trace_dat(evs, w.Layout(era=era, style=style)), expect(evs, tgid=False, group_dead=False))
    check('perf.data: states of ' + era, w.perf_data(evs, w.Layout(era=era)), expect(evs, **PE))
    if era != '2.6.33':
        st, out, err = dump(put('t', w.text(evs, 'raw', 9, era)))
        ok(not differ(expect(evs, tgid=False), out), 'text: numbers of %s are told by the numbers' % era,
           err + differ(expect(evs, tgid=False), out))
evs = w.workload(states=['R', 'S', 'R+'], seed=4)
st, out, err = dump(put('t', w.trace_dat(evs, w.Layout(states=False))))
ok(st == 0 and 'state letters' in err and not differ(expect(evs, tgid=False, group_dead=False), out),
   'a format without letters: those of 4.14 and later, and it says so', err)

# ---- what other programs make of the same files (the writers are right, then)

if which('trace-cmd'):
    for version in (6, 7):
        r = subprocess.run(['trace-cmd', 'report', '-t', '-N', put('t', w.trace_dat(EVENTS, L, version))],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        text = r.stdout
        st, out, err = dump(put('t2', text))
        ok(not differ(expect(EVENTS, tgid=False), [l for l in out]) or
           not differ(expect(EVENTS, tgid=False, group_dead=False), out),
           'trace-cmd report of the v%d file, read as text, is the same' % version,
           err + differ(expect(EVENTS, tgid=False, group_dead=False), out))
else:
    skip('trace-cmd report of the same file', 'no trace-cmd')
if which('perf'):
    r = subprocess.run(['perf', 'script', '--ns', '-i', put('t', plain)], stdout=subprocess.PIPE,
                       stderr=subprocess.DEVNULL)
    st, out, err = dump(put('t2', r.stdout))
    ok(not differ(expect(EVENTS, tgid=False, group_dead=False), out), 'perf script of the same file, read as text',
       err + differ(expect(EVENTS, tgid=False, group_dead=False), out))
else:
    skip('perf script of the same file', 'no perf')

done()

# SPDX-License-Identifier: BSD-2-Clause
"""Losses are counted and placed; events come out in the order of time, whatever the order in the file."""
import random
import struct

import recwriter as w
from reclib import DIR, differ, dump, info, put
from tap import done, ok

L = w.Layout()
EVENTS = w.workload(n=600)
TRACED = [e for e in EVENTS if e['kind'] != 'other']


def expect(events, **kw):
    return [w.dump(e, group_dead=False, **kw) for e in events if e['kind'] != 'other']


def losses(lines):
    return [l for l in lines if ' lost ' in l]


# ---- trace.dat: pages that say events are missing before them

for version in (6, 7):
    for long_size in (8, 4):
        L4 = w.Layout(long_size)
        missed = {1: {5: 17, 30: 0}, 3: {9: 1}}
        data = w.trace_dat(EVENTS, L4, version, missed=missed)
        st, out, err = dump(put('t', data))
        i, _ = info(put('t', data))
        cpu1 = [e for e in EVENTS if e['cpu'] == 1]
        cpu3 = [e for e in EVENTS if e['cpu'] == 3]
        want = sorted([(cpu1[5]['ts'], 1, 17), (cpu1[30]['ts'], 1, 0), (cpu3[9]['ts'], 3, 1)])
        got = [(int(l.split()[0]), int(l.split()[5]), int(l.split()[4])) for l in losses(out)]
        ok(got == want, 'trace.dat v%d %d-bit: gaps stand before the event they precede' % (version, long_size * 8),
           '%s\n%s\n%s' % (want, got, err))
        ok(i['lost'] == 3 and i['lost_events'] == 18 and i['lost_gaps_unknown'] == 1,
           'trace.dat v%d %d-bit: gaps, events and unknown gaps are counted at open' % (version, long_size * 8), i)
        ok(not differ(expect(EVENTS, tgid=False), [l for l in out if ' lost ' not in l]),
           'trace.dat v%d %d-bit: nothing else changes' % (version, long_size * 8))

# ---- perf.data

lossy = list(EVENTS)
for at, cpu, n in ((50, 0, 12), (90, 1, 3), (300, 2, 1000000)):
    lossy.insert(at, dict(ts=lossy[at]['ts'], cpu=cpu, tid=1, tgid=1, kind='lost', count=n))
for kw in (dict(), dict(pipe=True), dict(compress=True), dict(rounds=False)):
    data = w.perf_data(lossy, L, **kw)
    i, _ = info(put('t', data))
    st, out, err = dump(put('t', data))
    ok(i['lost'] == 3 and i['lost_events'] == 1000015 and len(losses(out)) == 3 and
       ' lost 12 0' in losses(out)[0] and ' lost 1000000 2' in losses(out)[2],
       'perf.data %s: LOST records are counted and placed' % (list(kw) or ''), '%s\n%s' % (i, losses(out)))
tail = w.sample_id(w.DEFAULT & ~(w.PERIOD | w.RAW), 0, 0, 0, 0, 999)
same = w.record(13, struct.pack('<Q', 1000015) + tail)
i, _ = info(put('t', w.perf_data(lossy, L, extra=same)))
ok(i['lost_events'] == 1000015, 'perf.data: LOST_SAMPLES that repeats LOST is not counted twice', i)
more = w.record(13, struct.pack('<Q', 1000020) + tail)
i, _ = info(put('t', w.perf_data(lossy, L, extra=more)))
st, out, err = dump(put('t', w.perf_data(lossy, L, extra=more)))
ok(i['lost_events'] == 1000020 and out[-1].endswith('lost 5 -1'),
   'perf.data: what only LOST_SAMPLES knows is lost at the end', '%s\n%s' % (i, out[-1]))
bpf = w.record(13, struct.pack('<Q', 77) + tail, misc=1 << 15)
i, _ = info(put('t', w.perf_data(EVENTS, L, extra=bpf)))
ok(i['lost_events'] == 0, 'perf.data: samples a BPF filter dropped are not lost', i)
thr = w.record(5, struct.pack('<QQQ', EVENTS[-1]['ts'], 100, 100) +
               w.sample_id(w.DEFAULT & ~w.PERIOD & ~w.RAW, EVENTS[-1]['ts'], 2, 0, 0, 100))
i, _ = info(put('t', w.perf_data(EVENTS, L, extra=thr)))
ok(i['lost_gaps_unknown'] == 1, 'perf.data: a throttled tracepoint is a gap of unknown size', i)
cut = w.perf_data(EVENTS, L, pipe=True, rounds=False, shuffle=False)[:-20]
st, out, err = dump(put('t', cut))
i, _ = info(put('t', cut))
ok(st == 0 and 'bytes are left out' in err and i['lost_gaps_unknown'] == 1 and out[-1].endswith('lost 0 -1') and
   not differ(expect(EVENTS)[:len(out) - 1], out[:-1]),
   'pipe-mode perf.data cut in a record: the whole ones, a warning, and a gap', err)

# ---- text

body = w.text(EVENTS, 'ftrace-nofl').decode().splitlines()[5:]
head = ['# entries-in-buffer/entries-written: 1000/1750   #P:4']
lines = head + body[:100] + ['CPU:2 [LOST 41 EVENTS]'] + body[100:200] + ['CPU:1 [7 EVENTS DROPPED]', 'CPU:0 [EVENTS DROPPED]'] + body[200:]
st, out, err = dump(put('t', ('\n'.join(lines) + '\n').encode()))
i, _ = info(put('t', ('\n'.join(lines) + '\n').encode()))
ok(i['lost_events'] == 750 + 41 + 7 and i['lost'] == 4 and i['lost_gaps_unknown'] == 1 and i['skipped_lines'] == 0,
   'text: the header, trace_pipe and trace-cmd say what is lost', i)
ok([l.split(' lost ')[1] for l in losses(out)] == ['750 -1', '41 2', '7 1', '0 0'], 'text: each in its place',
   losses(out))
t = b'perf 1 [001] 1.000000001: PERF_RECORD_LOST lost 33\nperf 1 [001] 1.000000002: sched:sched_wakeup: ' \
    b'comm=a pid=2 prio=120 target_cpu=001\n'
i, _ = info(put('t', t))
ok(i['lost_events'] == 33 and i['sched_wakeup'] == 1, 'text: perf script --show-lost-events', i)
broken = list(body)
at = next(n for n, l in enumerate(broken) if 'sched_switch' in l)
broken[at] = broken[at].replace(' prev_pid=', ' previous=')
st, out, err = dump(put('t', ('\n'.join(broken) + '\n').encode()))
ok(st == 0 and 'line %d' % (at + 1) in err and len(losses(out)) == 1 and len(out) == len(TRACED),
   'text: one event that cannot be read is said, with its line, and counts as lost', err)

# ---- order

lines = list(body)
for what, arrange in (('per-CPU files one after the other', lambda ls: sorted(ls, key=lambda l: l[l.index('['):][:5])),
                      ('reversed', lambda ls: ls[::-1]),
                      ('shuffled', lambda ls: random.Random(5).sample(ls, len(ls)))):
    st, out, err = dump(put('t', ('\n'.join(arrange(lines)) + '\n').encode()))
    ok(not differ(expect(EVENTS, tgid=False), out) or
       not differ([w.dump(e, tgid=False) for e in TRACED], out), 'text %s comes out in order' % what,
       err + differ([w.dump(e, tgid=False) for e in TRACED], out))
same = [dict(e, ts=7_000_000_000) for e in TRACED]
st, out, err = dump(put('t', w.text(same, 'ftrace')))
ok(not differ([w.dump(e, tgid=False) for e in same], out), 'text: equal times keep the order of the file',
   differ([w.dump(e, tgid=False) for e in same], out))
st, out, err = dump(put('t', w.perf_data(same, L, shuffle=False)))
ok(not differ(expect(same), out), 'perf.data: equal times keep the order of the file')
st, out, err = dump(put('t', w.trace_dat(same, L)))
ok(not differ(expect(sorted(same, key=lambda e: e['cpu']), tgid=False), out), 'trace.dat: equal times, by CPU')
for seed in range(8):
    r = random.Random(seed)
    evs = w.workload(n=500, cpus=1 + seed, seed=seed + 10, step=[3, 1000, 10**6][seed % 3])
    st, out, err = dump(put('t', w.perf_data(evs, L, chunk=r.choice([1, 2, 5, 40, 1000]), rounds=bool(seed % 2))))
    want = expect(evs)
    if seed % 3 == 0:  # many equal times: any order among them
        want, out = sorted(want), sorted(out)
    ok(not differ(want, out), 'perf.data chunks of CPUs, variant %d' % seed, err + differ(want, out))

for kw in (dict(), dict(pipe=True), dict(compress=True)):
    for chunk in (2, 20):
        st, out, err = dump(put('t', w.perf_data(lossy, L, chunk=chunk, **kw)), '-r', '4')
        ok(st == 0 and 'too late' not in err and len(losses(out)) == 3 and
           not differ(expect(EVENTS), [l for l in out if ' lost ' not in l]),
           'perf.data %s with more stretches than are held is ordered by rounds of %d' % (list(kw) or '', chunk), err)
st, out, err = dump(put('t', w.perf_data(EVENTS[50:] + EVENTS[:50], L, chunk=3)), '-r', '4')
ok(st == 0 and 'came too late' in err and len(out) == len(TRACED),
   'perf.data by rounds: what comes rounds too late is handed out, and said', err)
st, out, err = dump(put('t', ('\n'.join(body[::-1]) + '\n').encode()), '-r', '50')
ok(st == 1 and 'sort it by time' in err and '50 times by line 59' in err, 'text far out of order is refused past a limit', err)

done()

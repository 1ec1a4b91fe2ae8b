# SPDX-License-Identifier: BSD-2-Clause
"""Writes small recordings of every kind into a folder, as seeds for fuzz_recording: make_corpus.py FOLDER"""
import lzma
import os
import sys

import recwriter as w

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
events = w.workload(n=24, cpus=2)
L = w.Layout()
side = [dict(ts=events[3]['ts'], cpu=0, tid=1, tgid=1, kind='task', born=True, comm='', task_tid=9, task_tgid=9),
        dict(ts=events[3]['ts'], cpu=0, tid=1, tgid=1, kind='task', comm='task', task_tid=9, task_tgid=9),
        dict(ts=events[3]['ts'], cpu=1, tid=1, tgid=1, kind='lost', count=3)]
both = events[:4] + side + events[4:]
every = w.DEFAULT | w.CALLCHAIN | w.READ | w.BRANCH_STACK | w.REGS_USER | w.STACK_USER | w.CGROUP | w.PHYS_ADDR
files = {
    'perf/plain': w.perf_data(both, L),
    'perf/all': w.perf_data(both, w.Layout(data_loc=True), every, 12, cgroups={7: '/a'}),
    'perf/pipe': w.perf_data(both, L, pipe=True),
    'perf/packed': w.perf_data(both, L, compress=True),
    'perf/norounds': w.perf_data(both, L, rounds=False, chunk=2),
    'dat/v6': w.trace_dat(events, L, page=1024, missed={0: {3: 5}}),
    'dat/v6-32be': w.trace_dat(events, w.Layout(4, True), page=1024),
    'dat/v7': w.trace_dat(events, L, 7, page=1024),
    'dat/v7z': w.trace_dat(events, L, 7, True, page=1024),
    'text/gzip': w.gz(w.text(events[:6], 'script')),
    'text/xz': lzma.compress(w.text(events[:6], 'script')),
    'text/zstd': w.Zstd().compress(w.text(events[:6], 'script')),
}
for style in ('script', 'script-pid', 'script-chain', 'ftrace', 'ftrace-tgid', 'plugin', 'raw'):
    evs = w.workload(n=24, states=['R', 'R+', 'S', 'D'] if style == 'raw' else None)
    files['text/' + style] = w.text(evs, style, 6, '4.8')
files['text/lost'] = b'# entries-in-buffer/entries-written: 10/20 #P:2\nCPU:1 [LOST 3 EVENTS]\nCPU:0 [EVENTS DROPPED]\n' + \
    w.text(events[:6], 'ftrace-nofl')[200:]
for name, data in files.items():
    os.makedirs(os.path.join(out, os.path.dirname(name)), exist_ok=True)
    with open(os.path.join(out, name), 'wb') as f:
        f.write(data)

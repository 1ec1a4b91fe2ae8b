# SPDX-License-Identifier: BSD-2-Clause
"""Recordings of real machines: those that ship, those beside the project, and some made on this machine, each
compared with what perf and trace-cmd make of it."""
import collections
import lzma
import os
import re
import subprocess

from reclib import DIR, dump, info, path, put, shared, which, differ
from tap import done, ok, skip

KINDS = ('switch', 'wakeup', 'wakeup_new', 'waking', 'process_fork', 'process_exit', 'migrate_task')
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../data')


def count_text(data):
    """Events by name in a text, told by nothing but their names."""
    c = collections.Counter(re.findall(rb'[ :](sched_(?:%s)): ' % '|'.join(KINDS).encode(), data))
    return {k.decode(): v for k, v in c.items()}


def same_counts(name, file, text):
    i, err = info(file)
    want = count_text(text)
    got = {k: v for k, v in i.items() if k.startswith('sched_') and v}
    ok(want == got and sum(want.values()) > 20, name + ': as many of each event as in the text report',
       '%s\n%s\n%s' % (want, got, err))


def same_events(name, file, text, letters=True):
    """The binary read, and its text read, are the same but for what text cannot say."""
    def clean(lines):
        out = []
        for l in lines:
            if ' task ' in l or ' lost ' in l:
                continue
            l = re.sub(r' cgroup=.*', '', l)
            l = re.sub(r'cur=-?\d+/', 'cur=', l)
            l = re.sub(r'(sched_process_fork .*) -?\d+$', r'\1', l)
            l = re.sub(r'(sched_process_exit .*) -?\d+$', r'\1', l)
            out.append(re.sub(r' 0x[0-9a-f]+\+? \[', ' [', l) if not letters else l)
        return out
    st, a, err = dump(file)
    st2, b, err2 = dump(put('text', text))
    d = differ(clean(a), clean(b))
    ok(st == 0 and st2 == 0 and len(a) > 20 and not d, name + ': the same events as from its text', err + err2 + d)


def run(*cmd, **kw):
    return subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, **kw)


# ---- shipped

for rec, text in (('hog.perf.data.zst', 'hog.perf.txt.xz'), ('throttled.perf.data.xz', 'throttled.perf.txt.xz'),
                  ('storm.trace.dat.zst', 'storm.trace.txt.xz')):
    if not os.path.exists(os.path.join(DATA, rec)):
        skip(rec, 'not there')
        continue
    t = lzma.open(os.path.join(DATA, text)).read()
    same_counts(rec, os.path.join(DATA, rec), t)
    same_events(rec, os.path.join(DATA, rec), t)

# ---- trace.dat: ring buffer pages read here, and by libtracecmd

def both_ways(name, file):
    quick, slow = dump(file, '-o'), dump(file, '-o', '-l')
    taken, forced = info(file)[0].get('by_library'), info(file, '-l')[0].get('by_library')
    ok((taken, forced) == (0, 1), name + ': its pages are read straight, unless the library is asked for', (taken, forced))
    d = differ(slow[1], quick[1])
    ok(quick[0] == slow[0] == 0 and len(quick[1]) > 100 and not d, name + ': the same events as through libtracecmd', d + quick[2] + slow[2])


both_ways('storm.trace.dat.zst', os.path.join(DATA, 'storm.trace.dat.zst'))

# ---- beside the project

for name in ('lisa-sched_load.trace.dat', 'lisa-example_rtapp.trace.dat'):
    f = shared('traces/' + name)
    if not f or not which('trace-cmd'):
        skip(name, 'no ../shared/traces, or no trace-cmd')
        continue
    for opts in (['-R'], []):
        t = run('trace-cmd', 'report', '-t', *opts, f).stdout
        same_counts(name + ' ' + ' '.join(opts), f, t)
        same_events(name + ' ' + ' '.join(opts), f, t, letters=bool(opts))
    both_ways(name, f)
for name, opener, states in (('lisa-trace.txt.gz', 'zcat', {'0': 438, '1': 929, '2': 134, '64': 17, '130': 3, '4096': 335}),
                             ('traceshark-4cpu-ramload.asc.xz', 'xzcat', None)):
    f = shared('traces/' + name)
    if not f:
        skip(name, 'no ../shared/traces')
        continue
    t = run(opener, f).stdout
    same_counts(name, f, t)
    st, out, err = dump(f)
    plus = sum('+ [' in l for l in out)
    want = len(re.findall(rb'prev_state=(?:R\+|4096) ', t))
    ok(plus == want and plus > 0, name + ': as many preempted as the text says (%d)' % plus, want)

# ---- made here

def record(name, *args, cmd=('perf', 'bench', 'sched', 'pipe', '-l', '300'), pipe=False):
    f = path(name)
    base = ['perf', 'record', '-o', '-' if pipe else f, *args, '--', *cmd]
    if pipe:
        with open(f, 'wb') as out:
            r = subprocess.run(base, stdout=out, stderr=subprocess.PIPE, timeout=120)
    else:
        r = run(*base)
    return f if r.returncode == 0 and os.path.exists(f) and os.path.getsize(f) > 1000 else None


EV = ['-e', ','.join('sched:sched_' + k for k in KINDS), '-a', '-m', '4M']
for name, args, pipe in (('plain', [], False), ('with callchains', ['-g'], False), ('compressed', ['-z'], False),
                         ('pipe mode', [], True), ('monotonic clock', ['-k', 'mono'], False),
                         ('cgroups', ['--all-cgroups'], False), ('data addresses and registers', ['-d', '-I'], False),
                         ('read values', ['-s', '-e', 'cpu-clock'], False)):
    what = 'perf record here, ' + name
    f = record(name.replace(' ', '_'), *EV, *args, pipe=pipe) if which('perf') else None
    if not f:
        skip(what, 'perf record does not work here')
        continue
    t = run('perf', 'script', '--ns', '-G', '-F', 'comm,tid,cpu,time,event,trace', '-i', f).stdout
    same_counts(what, f, t)
    same_events(what, f, t)
    i, err = info(f)
    ok(i['tgids_known'] == 1 and i['nr_cpus'] <= os.cpu_count() and
       (i['clock'] == ('mono' if name.startswith('mono') else 'perf')), what + ': clock, CPUs', i)
    if name == 'cgroups':
        st, out, err = dump(f)
        ok(i['cgroups_known'] == 1 and sum(' cgroup=/' in l for l in out) > 20, what + ': events know their cgroup')
    os.unlink(f)
f = path('sched')
if which('perf') and run('perf', 'sched', 'record', '-o', f, '--', 'perf', 'bench', 'sched', 'pipe', '-l', '300').returncode == 0:
    i, err = info(f)
    ok(i['sched_wakeup'] == 0 and i['recorded.sched_wakeup'] == 0 and i['sched_waking'] > 100 and
       i['sched_switch'] > 100, 'perf sched record here: sched_waking and no sched_wakeup', i)
else:
    skip('perf sched record here', 'does not work here')

done()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""runqslower on recordings: rows equal an independent computation, filters, storages, summaries, open rows."""
import collections
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile

from tapcli import DATA, INLAY, SHARED, WAITS, done, equal, inlay, ok, rows_of, skip

HOG = os.path.join(DATA, 'hog.perf.data.zst')
STORM = os.path.join(DATA, 'storm.trace.dat.zst')
THROTTLED = os.path.join(DATA, 'throttled.perf.data.xz')
folder = tempfile.TemporaryDirectory(prefix='inlay-rqs-')  # gone with the process
tmp = folder.name


def compare(recording, text, min_text, min_ns, *more):
    """Every storage gives the same rows, and they are those waits.py computes from the text."""
    name = f'{os.path.basename(recording)} over {min_text}{" " + " ".join(more) if more else ""}'
    outs = {}
    for storage in ('task', 'hash', 'hash-noprealloc'):
        p = inlay('runqslower', '-i', recording, '--json', '--storage', storage, *more, min_text)
        outs[storage] = p.out.replace(f'"storage":"{storage}"', '"storage":"task"')
        if p.rc:
            ok(False, f'{name}: {storage} storage reads it', p.err)
            return
    ok(outs['task'] == outs['hash'] == outs['hash-noprealloc'], f'{name}: the three storages give identical output')
    path = os.path.join(tmp, 'rows.json')
    with open(path, 'w', errors='surrogateescape') as f:
        f.write(outs['task'])
    metric = ['--metric', more[1]] if more else []
    p = subprocess.run([sys.executable, WAITS, '--min-ns', str(min_ns), '--at-least', '20', *metric, '--compare', path,
                        text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    ok(p.returncode == 0, f'{name}: {p.stdout.strip().splitlines()[-1] if p.stdout else "?"}', p.stdout)
    rows, _, summary = rows_of(outs['task'])
    ok(all(sum(r['ns'] for r in row['ran']) == row['wait_ns'] for row in rows), f'{name}: shares sum to the wait')
    equal(len(rows), summary['over'], f'{name}: the summary counts the rows')


def data(name):
    return os.path.join(DATA, name)


compare(HOG, data('hog.perf.txt.xz'), '1ms', 10**6)
compare(data('hog.perf.txt.xz'), data('hog.perf.txt.xz'), '1ms', 10**6)
compare(data('hog.ftrace.txt.gz'), data('hog.ftrace.txt.gz'), '1ms', 10**6)
compare(THROTTLED, data('throttled.perf.txt.xz'), '1ms', 10**6)
compare(STORM, data('storm.trace.txt.xz'), '1ms', 10**6)
compare(STORM, data('storm.trace.txt.xz'), '1us', 10**3)
traces = os.path.join(SHARED, 'traces')
if os.path.isdir(traces):
    for name in ('lisa-sched_load', 'lisa-example_rtapp'):
        text = os.path.join(tmp, name + '.txt')
        try:
            with open(text, 'w') as f:
                subprocess.run(['trace-cmd', 'report', '-t', os.path.join(traces, name + '.trace.dat')], stdout=f,
                               stderr=subprocess.DEVNULL, check=True)
        except (OSError, subprocess.CalledProcessError):
            skip(f'{name}.trace.dat', 'no trace-cmd to render it as text')
            continue
        compare(os.path.join(traces, name + '.trace.dat'), text, '100us', 10**5)
    for name in ('lisa-trace.txt.gz', 'traceshark-4cpu-ramload.asc.xz'):
        compare(os.path.join(traces, name), os.path.join(traces, name), '50us', 5 * 10**4)
    shark = os.path.join(traces, 'traceshark-4cpu-ramload.asc.xz')
    compare(shark, shark, '50us', 5 * 10**4, '--metric', 'waking')
else:
    skip('the shared traces', 'not here')

# schema
everything = inlay('runqslower', '-i', HOG, '--json', '--hist', '--summary', '0')
hist = json.loads(everything.out.splitlines()[-1])['summary']
rows, opened, summary = rows_of(inlay('runqslower', '-i', HOG, '--json', '0').out)
ok(all(set(r) == {'ts_ns', 'comm', 'tid', 'tgid', 'cpu', 'wait_ns', 'kind', 'ran'} for r in rows),
   'a row has exactly the fields of the schema')
ok({r['kind'] for r in rows} <= {'woken', 'new', 'preempted', 'requeued', 'migrated'} and
   {'woken', 'new', 'preempted', 'requeued', 'migrated'} == {r['kind'] for r in rows}, 'every kind occurs, and no other',
   {r['kind'] for r in rows})
ok([r['ts_ns'] for r in rows] == sorted(r['ts_ns'] for r in rows), 'rows stand in the order of their time')
equal(sum(b['count'] for b in hist['hist']), summary['waits'], '--hist counts every wait once')
ok(all(sum(1 for r in rows if b['from_ns'] <= r['wait_ns'] < b['to_ns']) == b['count'] for b in hist['hist']),
   'each bucket of --hist holds the waits of its range')
equal(sum(r['wait_ns'] for r in rows), summary['wait_ns'], 'wait_ns of the summary is the sum of all waits')
equal(max(r['wait_ns'] for r in rows), summary['longest_ns'], 'longest_ns of the summary is the longest wait')
exact = sorted(r['wait_ns'] for r in rows)[-(-99 * len(rows) // 100) - 1]
ok(exact <= summary['p99_ns'] <= exact * 33 / 32 + 1, 'p99 is the exact one, or at most 1/32 more', summary['p99_ns'],
   exact)

# --summary
by_task = collections.defaultdict(list)
for r in rows:
    by_task[r['tid'], r['tgid']].append(r['wait_ns'])
tasks = {(t['tid'], t['tgid']): t for t in hist['tasks']}
ok({k: (len(v), sum(v), max(v)) for k, v in by_task.items()} ==
   {k: (t['waits'], t['wait_ns'], t['longest_ns']) for k, t in tasks.items()}, '--summary has every task, its waits, sum, longest')
victim = max(rows, key=lambda r: r['wait_ns'])
blame = collections.Counter()
for r in rows:
    if r['tid'] == victim['tid']:
        for share in r['ran']:
            blame[share['tid']] += share['ns']
t = tasks[victim['tid'], victim['tgid']]
ok(t['most_by']['ns'] == max(blame.values()) == blame[t['most_by']['tid']], '--summary names who had the CPU for most of it',
   t, blame.most_common(3))

# filters
for option, pick in ((('-t', victim['tid']), lambda r: r['tid'] == victim['tid']),
                     (('-p', victim['tgid']), lambda r: r['tgid'] == victim['tgid']),
                     (('-c', 'w*'), lambda r: fnmatch.fnmatchcase(r['comm'], 'w*')),
                     (('-c', 'web [sw]*'), lambda r: fnmatch.fnmatchcase(r['comm'], 'web [sw]*')),
                     (('-C', '2'), lambda r: r['cpu'] == 2),
                     (('-C', '0,1'), lambda r: r['cpu'] in (0, 1))):
    got, _, s = rows_of(inlay('runqslower', '-i', HOG, '--json', *option, '1ms').out)
    want = [r for r in rows if pick(r)]
    name = ' '.join(map(str, option))
    ok(want and got == [r for r in want if r['wait_ns'] > 10**6], f'{name} lists exactly the rows it asks for')
    equal((s['waits'], s['over'], s['wait_ns']), (len(want), len(got), sum(r['wait_ns'] for r in want)),
          f'{name} also holds for the counts')
p = inlay('runqslower', '-i', HOG, '-p', '4194303')
ok(p.rc == 1 and 'no process 4194303' in p.err, 'an unknown PID is an error that names it', p.err)
p = inlay('runqslower', '-i', HOG, '-t', '4194303')
ok(p.rc == 1 and 'no task 4194303' in p.err, 'an unknown TID is an error that names it', p.err)
p = inlay('runqslower', '-i', STORM, '-p', '1')
ok(p.rc == 1 and '-t or -c' in p.err, '-p is refused where no process is known, with what to do', p.err)
ok(rows_of(inlay('runqslower', '-i', STORM, '--json', '5ms').out)[2]['unknown_tgids'] > 0, 'unknown processes are counted')
p = inlay('runqslower', '-i', HOG, '--cgroup', '/none')
ok(p.rc == 1 and '--all-cgroups' in p.err, '--cgroup is refused where no cgroup is known, with what to do', p.err)

# -d, and tasks that still wait then
start, end = summary['start_ns'], summary['end_ns']
half = (end - start) // 2
got, opened, s = rows_of(inlay('runqslower', '-i', HOG, '--json', '-d', f'{half}ns', '1ms').out)
ok(got and got == [r for r in rows if r['wait_ns'] > 10**6 and r['ts_ns'] <= start + half],
   '-d ends at that time of the recording')
equal(s['end_ns'], start + half, '-d: the summary ends there too')
middle = [r for r in rows if r['wait_ns'] > 8 * 10**6 and r['kind'] != 'migrated'][3]
cut = middle['ts_ns'] - 2 * 10**6
for storage in ('task', 'hash'):
    _, opened, _ = rows_of(inlay('runqslower', '-i', HOG, '--json', '--storage', storage, '-d', f'{cut - start}ns',
                                 '1ms').out)
    mine = [o for o in opened if o['tid'] == middle['tid']]
    ok(len(mine) == 1 and mine[0]['open'] == 'end' and mine[0]['wait_ns'] == middle['wait_ns'] - 2 * 10**6 and
       mine[0]['kind'] == middle['kind'] and sum(r['ns'] for r in mine[0]['ran']) == mine[0]['wait_ns'],
       f'a task that waits at the end is an open row with what it waited so far ({storage})', opened)
text = inlay('runqslower', '-i', HOG, '-d', f'{cut - start}ns', '1ms').out
ok(re.search(rf'≥ {mine[0]["wait_ns"] // 10**6}\.\d{{3}} ms', text), 'and in text it is marked ≥', text[-500:])

# text
text = inlay('runqslower', '-i', HOG, '5ms').out.splitlines()
ok(re.match(r'.*hog.perf.data.zst: perf.data in zstd, \d+\.\d{3} s, \d+ CPUs, \d+ events, 0 lost; waits from sched_wakeup; '
            r'uid \d+, bpf\(2\) not used$', text[0]), 'the first line says what the recording is', text[0])
ok(re.match(r'\d+ waits over 5.000 ms of \d+, p99 \d+\.\d{3} ms, (\d+ open, )?\d+ missed enqueues, \d+ storage failures, '
            r'\d+ events lost$', text[-1]), 'the last line counts', text[-1])
body = [line for line in text[2:-1]]
over5 = [r for r in rows if r['wait_ns'] > 5 * 10**6]
equal(len([b for b in body if '≥' not in b]), len(over5), 'a line a wait')
ok(all(f'{r["wait_ns"] // 10**6}.{r["wait_ns"] // 1000 % 1000:03d} ms {r["kind"]}' in b
       for r, b in zip(over5, [b for b in body if '≥' not in b])), 'each shows its wait and kind')
quiet = inlay('runqslower', '-i', HOG, '10s').out
ok('no wait over 10000.000 ms; the longest:' in quiet and f' {victim["tid"]} ' in quiet,
   'with nothing over MIN the longest wait is shown', quiet)
p = inlay('runqslower', '-i', HOG, '--profile', '5ms')
ok(re.search(r'^sched_switch +\d+ +\d+ \(p50 \d+, p99 \d+\) +\d+ .* +\d+', p.out, re.M) and
   re.search(r'^sched_process_fork +\d+ +- ', p.out, re.M), '--profile has the three storages side by side, - for what is not',
   p.out[-900:])
prof = json.loads(inlay('runqslower', '-i', HOG, '--profile', '--json').out.splitlines()[-1])['summary']['profile']
runs = {(c['handler'], c['storage']): c['runs'] for c in prof}
ok(runs['sched_switch', 'task'] == runs['sched_switch', 'hash'] == runs['sched_switch', 'hash-noprealloc'] > 500,
   '--profile: every storage saw every switch', runs)
equal(rows_of(inlay('runqslower', '-i', HOG, '--profile', '--json', '1ms').out)[0],
      [r for r in rows if r['wait_ns'] > 10**6], '--profile leaves the rows as they are')

# determinism and circumstances
runs = [inlay('runqslower', '-i', STORM, '1ms', env={**os.environ, 'MALLOC_PERTURB_': str(i * 85)}) for i in (0, 1)]
ok(runs[0].stdout == runs[1].stdout and runs[0].stderr == runs[1].stderr, 'two runs are byte-identical')
for raw in (HOG, STORM):
    with open(raw, 'rb') as f:
        piped = inlay('runqslower', '-i', '-', '--json', '1ms', input=f.read())
    equal(rows_of(piped.out)[0], rows_of(inlay('runqslower', '-i', raw, '--json', '1ms').out)[0],
          f'{os.path.basename(raw)} from standard input gives the same rows')
if os.geteuid() == 0:
    argv = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', INLAY, 'runqslower', '-i', '/dev/stdin',
            '--json', '1ms']
    with open(HOG, 'rb') as f:
        p = subprocess.run(argv, stdin=f, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if p.returncode == 127 or b'setpriv' in p.stderr:
        skip('as nobody', 'no setpriv, or nobody may not run the binary')
    else:
        equal(rows_of(p.stdout.decode())[0], [r for r in rows if r['wait_ns'] > 10**6], 'as nobody: the same rows')
p = inlay('runqslower', '-i', data('hog.ftrace.txt.gz'), '--attach', 'raw_tp', '--json', '1ms')
ok(p.rc == 0 and rows_of(p.out)[0] and 'using the hash' in p.err, '--attach raw_tp works on the user engine, announced', p.err)
equal(rows_of(p.out)[0], rows_of(inlay('runqslower', '-i', data('hog.ftrace.txt.gz'), '--json', '1ms').out)[0],
      'and gives the same rows')
if os.path.isdir(traces):
    p = inlay('runqslower', '-i', os.path.join(traces, 'lisa-sched_load.trace.dat'), '100us')
    ok('holds no wake-ups' in p.err and 'perf record -a -e sched:sched_switch,sched:sched_wakeup' in p.err,
       'a recording without wake-ups says so, with the command that records them', p.err)

# a recording of switches only, made here: names with odd bytes, gaps
odd = os.path.join(tmp, 'odd.txt')
with open(odd, 'wb') as f:
    f.write(b'# tracer: nop\n#\n')

    def line(ts, cpu, event):
        f.write(b'   <idle>-0     [%03d] d... %d.%06d: ' % (cpu, ts // 10**6, ts % 10**6) + event + b'\n')
    line(1000000, 0, b'sched_wakeup: comm=caf\xe9 " pid=70 prio=120 target_cpu=000')
    line(1000010, 0, b'sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a\\b '
                     b'next_pid=71 next_prio=120')
    line(1020000, 0, b'sched_switch: prev_comm=a\\b prev_pid=71 prev_prio=120 prev_state=S ==> next_comm=caf\xe9 " '
                     b'next_pid=70 next_prio=120')
p = inlay('runqslower', '-i', odd, '--json', '1ms')
odd_rows, odd_open, _ = rows_of(p.out)
ok(len(odd_rows) == 1 and odd_rows[0]['comm'] == 'caf\udce9 "' and odd_rows[0]['wait_ns'] == 20 * 10**6 and
   [(s['comm'], s['tid'], s['ns']) for s in odd_rows[0]['ran']] == [('a\\b', 71, 19990000), ('swapper/0', 0, 10000)],
   'names with quotes, backslashes and bytes that are no UTF-8 survive JSON', p.out, p.err)
done()

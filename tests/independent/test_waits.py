#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the independent computation itself: its answers by hand, and that it can say no."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '../structure')]
import tree  # noqa: E402
import waits  # noqa: E402

DATA = os.path.join(HERE, '../data')

# One story in the kernel's own words. Times in us from 1 s. CPU 1: a runs, b is woken at 10 and
# waits behind a (30) and c (20); a is preempted at 40 and back at 85; d is woken at 50 on CPU 0,
# moved, and runs at 90; idle from 95 until e (new at 96) runs at 99.
STORY = [
    (0, 1, 'sched_switch', ('swapper/1', 0, 'R', 'a', 100)),
    (10, 0, 'sched_wakeup', ('b', 101)),
    (40, 1, 'sched_switch', ('a', 100, 'R+', 'c ==> x', 102)),
    (50, 0, 'sched_wakeup', ('d', 103)),
    (60, 1, 'sched_switch', ('c ==> x', 102, 'S', 'b', 101)),
    (70, 0, 'sched_migrate_task', ('d', 103)),
    (85, 1, 'sched_switch', ('b', 101, 'R', 'a', 100)),
    (90, 1, 'sched_switch', ('a', 100, 'S', 'd', 103)),
    (92, 1, 'sched_switch', ('d', 103, 'D', 'b', 101)),
    (95, 1, 'sched_switch', ('b', 101, 'S', 'swapper/1', 0)),
    (95.5, 0, 'sched_process_fork', ('e', 104)),
    (96, 0, 'sched_wakeup_new', ('e', 104)),
    (99, 1, 'sched_switch', ('swapper/1', 0, 'R', 'e', 104)),
    (99.5, 0, 'sched_wakeup', ('f', 105)),
    (120, 1, 'sched_switch', ('e', 104, 'X', 'swapper/1', 0)),
]
# (time, comm, tid, cpu, wait, kind, [(tid, share)]), by hand
ANSWER = [
    (60, 'b', 101, 1, 50, 'woken', [(100, 30), (102, 20)]),
    (85, 'a', 100, 1, 45, 'preempted', [(101, 25), (102, 20)]),
    (90, 'd', 103, 1, 40, 'migrated', [(101, 25), (102, 10), (100, 5)]),
    (92, 'b', 101, 1, 7, 'requeued', [(100, 5), (103, 2)]),
    (99, 'e', 104, 1, 3, 'new', [(0, 3)]),
]


def stamp(us, digits):
    ns = 10**9 + int(us * 1000)
    return f'{ns // 10**9}.{ns % 10**9:09d}'[:2 + digits]


def body(name, f, style):
    number = {'R': 0, 'R+': 256, 'S': 1, 'D': 2, 'X': 16}
    if name == 'sched_switch':
        pc, pp, st, nc, np = f
        if style == 'plugin':
            return f'{pc}:{pp} [120] {st.rstrip("+")} ==> {nc}:{np} [120]'
        if style == 'numbers':
            return (f'prev_comm={pc} prev_pid={pp} prev_prio=120 prev_state={number[st]} '
                    f'next_comm={nc} next_pid={np} next_prio=120')
        return (f'prev_comm={pc} prev_pid={pp} prev_prio=120 prev_state={st} ==> '
                f'next_comm={nc} next_pid={np} next_prio=120')
    if name == 'sched_process_fork':
        return f'comm=p pid=1 child_comm={f[0]} child_pid={f[1]}'
    if name == 'sched_migrate_task':
        return f'comm={f[0]} pid={f[1]} prio=120 orig_cpu=0 dest_cpu=1'
    if style == 'plugin':
        return f'{f[0]}:{f[1]} [120] CPU:001'
    return f'comm={f[0]} pid={f[1]} prio=120 target_cpu=001'


def line(style, us, cpu, name, fields):
    if style == 'perf':
        return f'        some task  7/8 [00{cpu}]  {stamp(us, 9)}:          1 sched:{name}: {body(name, fields, style)}'
    if style == 'ftrace':
        return f'       some-task-8       (      7) [00{cpu}] d..2.  {stamp(us, 6)}: {name}: {body(name, fields, style)}'
    return f'       some task-8     [00{cpu}]  {stamp(us, 9)}: {name}:         {body(name, fields, style)}'


def compute(text, min_ns=0, metric=None):
    with tempfile.NamedTemporaryFile('w', suffix='.txt') as f:
        f.write(text)
        f.flush()
        w = waits.Waits(waits.Text(f.name), metric)
    return w, list(w.over(min_ns))


def flat(rows):
    return [((r['ts_ns'] - 10**9) / 1000, r['comm'], r['tid'], r['cpu'], r['wait_ns'] / 1000, r['kind'],
             [(x['tid'], x['ns'] / 1000) for x in r['ran']]) for r in rows]


def story(style):
    return '\n'.join(line(style, *event) for event in STORY) + '\n'


def test_styles(tap):
    for style in ('perf', 'fmt', 'numbers', 'plugin', 'ftrace'):
        w, rows = compute(story(style))
        want = ANSWER
        if style == 'plugin':
            want = [a[:5] + ('requeued' if a[5] == 'preempted' else a[5],) + a[6:] for a in ANSWER]
        got = flat(rows)
        tap.ok(got == want, f'the story has the rows worked out by hand: {style}', [repr(g) for g in got])
        # a and c were on the CPU's queue before it began (a is its first prev's next)
        tap.ok(w.missed == 2 and {(o['tid'], o['open']) for o in w.open} ==
               {(100, 'start'), (102, 'start'), (105, 'end')}, f'missed and open are told: {style}', [w.open])
    w, rows = compute(story('fmt'), 45000)
    tap.ok([r['tid'] for r in rows] == [101], 'a wait equal to the minimum is not over it')


def test_rules(tap):
    twice = [(0, 1, 'sched_switch', ('x', 1, 'S', 'y', 2)), (10, 0, 'sched_wakeup', ('b', 101)),
             (20, 0, 'sched_wakeup', ('b', 101)), (30, 1, 'sched_switch', ('y', 2, 'S', 'b', 101)),
             (40, 1, 'sched_switch', ('b', 101, 'S', 'y', 2)), (50, 1, 'sched_switch', ('y', 2, 'S', 'b', 101))]
    _, rows = compute('\n'.join(line('fmt', *e) for e in twice))
    tap.ok([r['wait_ns'] for r in rows] == [10000], 'the last wake-up counts, and its time is used once')
    reused = [(0, 1, 'sched_switch', ('x', 1, 'S', 'y', 2)), (10, 0, 'sched_wakeup', ('b', 101)),
              (20, 0, 'sched_process_fork', ('n', 101)), (30, 1, 'sched_switch', ('y', 2, 'S', 'n', 101))]
    w, rows = compute('\n'.join(line('fmt', *e) for e in reused))
    tap.ok(not rows and w.missed == 2, 'a fork with a known pid drops what its last owner left')
    waking = [(0, 1, 'sched_switch', ('x', 1, 'S', 'y', 2)), (10, 0, 'sched_waking', ('b', 101)),
              (11, 0, 'sched_migrate_task', ('b', 101)), (30, 1, 'sched_switch', ('y', 2, 'S', 'b', 101)),
              (31, 0, 'sched_waking', ('c', 102)), (32, 0, 'sched_switch', ('p', 3, 'S', 'q', 4)),
              (33, 0, 'sched_migrate_task', ('c', 102)), (40, 1, 'sched_switch', ('b', 101, 'S', 'c', 102))]
    w, rows = compute('\n'.join(line('fmt', *e) for e in waking))
    tap.ok(w.metric == 'waking' and [(r['wait_ns'], r['kind']) for r in rows] ==
           [(20000, 'woken'), (9000, 'migrated')], 'the placement of a waking is no migration, a later move is')
    tap.ok(not compute('\n'.join(line('fmt', *e) for e in waking), metric='wakeup')[1],
           'the metric can be forced')
    old = story('numbers').replace('prev_state=256', 'prev_state=4096')
    tap.ok(flat(compute(old)[1]) == ANSWER, 'the number of the plus is found where old kernels have it')
    lost = 'CPU:1 [LOST 12 EVENTS]\n# entries-in-buffer/entries-written: 10/15   #P:2\n' + story('ftrace')
    tap.ok(compute(lost)[0].text.lost == 17, 'losses that the text tells of are counted')


def run_compare(text_path, rows, *args):
    with tempfile.NamedTemporaryFile('w', suffix='.json') as f:
        f.write('\n'.join(json.dumps(r) for r in rows) + '\n')
        f.flush()
        return subprocess.run([sys.executable, os.path.join(HERE, 'waits.py'), '--compare', f.name, *args,
                               text_path], capture_output=True, text=True)


def test_refusals(tap):
    path = os.path.join(DATA, 'hog.perf.txt.xz')
    w = waits.Waits(waits.Text(path))
    args = ('--min-ns', '1000000', '--at-least', '20')

    def rows():
        return json.loads(json.dumps(list(w.over(1000000))))

    good = run_compare(path, rows(), *args)
    tap.ok(good.returncode == 0 and ' equal ' in good.stdout, 'equal rows are equal', [good.stdout])

    def refused(change, name):
        changed = rows()
        change(changed)
        done = run_compare(path, changed, *args)
        tap.ok(done.returncode == 1, f'refused: {name}', [done.stdout[:200]])

    def first(key, value):
        def change(r):
            r[5][key] = value(r[5])
        return change

    refused(lambda r: r.pop(3), 'a row less')
    refused(lambda r: r.append(dict(r[0], ts_ns=r[0]['ts_ns'] + 1)), 'a row more')
    refused(lambda r: r.append(dict(r[0])), 'a row twice')
    refused(first('wait_ns', lambda x: x['wait_ns'] + 1), 'a wait one ns longer')
    refused(first('cpu', lambda x: x['cpu'] + 1), 'another CPU')
    refused(first('tid', lambda x: x['tid'] + 1), 'another task')
    refused(first('comm', lambda x: x['comm'] + 'x'), 'another name')
    refused(first('kind', lambda x: 'new' if x['kind'] != 'new' else 'woken'), 'another kind')
    refused(first('ran', lambda x: x['ran'][:-1]), 'one less who ran')
    refused(first('ran', lambda x: [dict(x['ran'][0], ns=x['ran'][0]['ns'] - 1)] + x['ran'][1:]), 'a share less')
    refused(lambda r: r.clear(), 'no rows at all')
    tap.ok(run_compare(path, [], '--min-ns', str(10**12)).returncode == 1,
           'refused: nothing against nothing')
    tap.ok(run_compare(path, rows() + [{'summary': {'missed': 77}}], *args).returncode == 1,
           'refused: another number of missed enqueues')


def test_counts(tap):
    readme = open(os.path.join(DATA, 'README.md')).read()
    for text in ('hog.perf.txt.xz', 'throttled.perf.txt.xz', 'storm.trace.txt.xz', 'hog.ftrace.txt.gz'):
        w = waits.Waits(waits.Text(os.path.join(DATA, text)))
        one, five = w.summary(10**6), w.summary(5 * 10**6)
        row = next(l for l in readme.splitlines() if l.startswith('|') and f'`{text}`' in l)
        want = [int(x) for x in row.split('|')[-5:-1]]
        got = [one['waits'], one['over'], five['over'], one['missed']]
        tap.ok(got == want and one['over'] >= 20, f'{text}: counts are those its README tells', [got])
        kinds = {r['kind'] for r in w.over(10**6)}
        tap.ok(len(kinds) >= 4 and all(sum(x['ns'] for x in r['ran']) == r['wait_ns'] for r in w.over(0)),
               f'{text}: {len(kinds)} kinds of wait over 1 ms, shares sum to the wait in every row')


def test_foreign(tap):
    shared = os.environ.get('INLAY_SHARED') or os.path.join(tree.ROOT, '../shared')
    # exact arithmetic, strictly over 50 us (floating point takes some waits of 50 us for more)
    for name, metric, want in (('lisa-trace.txt.gz', None, 115), ('traceshark-4cpu-ramload.asc.xz', 'wakeup', 74),
                               ('traceshark-4cpu-ramload.asc.xz', 'waking', 170)):
        path = os.path.join(shared, 'traces', name)
        what = f'{name} has {want} waits over 50 us{f", by {metric}" if metric else ""}'
        if not os.path.exists(path):
            tap.skip(what, 'the recording is not here')
            continue
        w = waits.Waits(waits.Text(path), metric)
        tap.ok(w.summary(50000)['over'] == want, what, [w.summary(50000)])


def main():
    tap = tree.Tap()
    for test in (test_styles, test_rules, test_refusals, test_counts, test_foreign):
        test(tap)
    tap.done()


if __name__ == '__main__':
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Run-queue waits, worked out from a text rendering of a recording: an independent computation.

    waits.py [--min-ns N] [--metric wakeup|waking] [--json] FILE
    waits.py [--min-ns N] --compare ROWS.json [--at-least N] FILE

FILE is what `trace-cmd report -t` (any of: by format, by plug-in, -R), `perf script [--ns]`, or a
tracefs trace file prints; .gz, .xz, .zst and - are read too. It shares no code with inlay and
takes none of its output but the rows it compares with. What it computes, in order of the text
(sorted by time, keeping the text's order where times are equal):

start[tid]  the time at which a task last became runnable. Set, whatever was there before, by
            * sched_wakeup or sched_wakeup_new of the task (metric "wakeup"), or sched_waking or
              sched_wakeup_new (metric "waking": the default if the text has no sched_wakeup);
            * sched_switch away from the task while it is runnable: prev_state R, R+, 0 or the
              number that stands for "+" alone (see plus_bit).
            Pid 0 never waits. A fork that makes the tid drops what an earlier owner left, and so
            does the switch away from a task that is dead (X, Z, x).
wait        at a sched_switch first prev is looked at, as above, then next: if start[next] is
            there, wait = time - start[next], which is deleted, at any length. If it is not there
            (and next is not idle) the enqueue was missed. A row is a wait > MIN; MIN 0 takes all.
kind        of the enqueue: woken (wakeup, waking), new (wakeup_new), preempted (R+), requeued (R);
            migrated, whatever it was, if a sched_migrate_task of the task stands after its enqueue.
            With metric waking the placement of the waking itself is not a migration: a migrate
            on the CPU of the waking with no sched_switch there in between.
ran         who was on the CPU where the wait ended in [start, end): between two sched_switch of
            that CPU its next task; before its first one, that one's prev. By tid (idle: 0, named
            swapper/CPU), most first, then lower tid; the last name the task had there. The shares
            sum to the wait.
open        tasks enqueued and not switched in at the end of the text ("end"): they wait at least
            last time of the text - start; and, in a text that has wake-ups, tasks whose first
            switch, wake-up or fork is to be switched in ("start"): they were queued before the
            text begins and waited at least time - first time of the text. Not counted as waits.

Where the text cannot tell (the plug-in of trace-cmd prints R for R+) preempted and requeued
compare as equal.
"""
import argparse
import bisect
import collections
import gzip
import json
import lzma
import re
import subprocess
import sys

Event = collections.namedtuple('Event', 'ts cpu name body')

# "  comm-12 ( tgid) [003] d..2. 12.345678901: name: body" (trace-cmd, tracefs) and
# "comm  12/12 [003] 12.345678: 1 sched:name: body" (perf). The comm may hold anything, so both are
# matched from the bracketed CPU, which stands just before flags and the time; that is longer than
# a comm can be. Who emitted the event is in neither rendering to be trusted, and not needed.
STAMP = re.compile(
    r'\s+\[(?P<cpu>\d+)\]\s+(?:[^\s:\[\]]{1,9}\s+)?'
    r'(?P<s>\d+)\.(?P<frac>\d{6,9}):\s+')
EVENT = re.compile(r'(?:\d+\s+)?(?:(?P<system>\w+):)?(?P<name>[A-Za-z_]\w*):(?:\s+|$)')
SWITCH_FMT = re.compile(
    r'prev_comm=(?P<pc>.*) prev_pid=(?P<pp>\d+) prev_prio=-?\d+ prev_state=(?P<st>\S+)'
    r'(?: ==>)? next_comm=(?P<nc>.*) next_pid=(?P<np>\d+) next_prio=-?\d+')
SWITCH_PLUGIN = re.compile(
    r'(?P<pc>.*):(?P<pp>\d+) \[-?\d+\] (?P<st>\S+) ==> (?P<nc>.*):(?P<np>\d+) \[-?\d+\]')
TASK_FMT = re.compile(r'comm=(?P<c>.*) pid=(?P<p>\d+) prio=')
TASK_PLUGIN = re.compile(r'(?P<c>.*):(?P<p>\d+) \[-?\d+\]')
FORK_FMT = re.compile(r'child_comm=(?P<c>.*) child_pid=(?P<p>\d+)')
LOST_FTRACE = re.compile(r'CPU:(\d+) \[(?:LOST )?(\d+ )?EVENTS(?: DROPPED)?\]')
ENTRIES = re.compile(r'# entries-in-buffer/entries-written: (\d+)/(\d+)')


def open_text(path):
    if path == '-':
        return sys.stdin
    opener = {'gz': gzip.open, 'xz': lzma.open}.get(path.rsplit('.', 1)[-1])
    if opener:
        return opener(path, 'rt', errors='surrogateescape')
    if path.endswith('.zst'):
        out = subprocess.run(['zstd', '-dcq', path], stdout=subprocess.PIPE, check=True).stdout
        return out.decode(errors='surrogateescape').splitlines()
    return open(path, errors='surrogateescape')


class Text:
    """The scheduler's events of a text rendering, in time order."""

    WANTED = {'sched_switch', 'sched_wakeup', 'sched_wakeup_new', 'sched_waking',
              'sched_migrate_task', 'sched_process_fork', 'sched_process_exit'}

    def __init__(self, path):
        self.lost = 0
        self.events = []
        self.first = self.last = None      # times of the first and last event of any name
        self.plugin = False
        self.digits = 0
        for line in open_text(path):
            self.take(line.rstrip('\n'))
        self.events.sort(key=lambda e: e.ts)

    def take(self, line):
        m = STAMP.search(line)
        if not m:
            entries, lost = ENTRIES.match(line), LOST_FTRACE.search(line)
            if entries:
                self.lost += max(0, int(entries[2]) - int(entries[1]))
            elif lost:
                self.lost += int(lost[2] or 1)
            return
        frac = m['frac']
        self.digits = max(self.digits, len(frac))
        ts = int(m['s']) * 10**9 + int(frac.ljust(9, '0'))
        self.first = ts if self.first is None else min(self.first, ts)
        self.last = ts if self.last is None else max(self.last, ts)
        e = EVENT.match(line, m.end())
        if e and e['name'] in self.WANTED and e['system'] in (None, 'sched'):
            self.events.append(Event(ts, int(m['cpu']), e['name'], line[e.end():]))

    def switch(self, body):
        """(prev pid, prev comm, state, next pid, next comm)"""
        m = SWITCH_FMT.match(body)
        if not m:
            m = SWITCH_PLUGIN.match(body)
            self.plugin = self.plugin or bool(m)
        if not m:
            raise ValueError(f'sched_switch not understood: {body}')
        return int(m['pp']), m['pc'], m['st'], int(m['np']), m['nc']

    @staticmethod
    def task(body):
        m = TASK_FMT.match(body) or TASK_PLUGIN.match(body)
        if not m:
            raise ValueError(f'task event not understood: {body}')
        return int(m['p'])

    @staticmethod
    def child(body):
        m = FORK_FMT.search(body)
        if not m:
            raise ValueError(f'fork not understood: {body}')
        return int(m['p'])

    def plus_bit(self):
        """
        The number of "+" where states are numbers. Its place moved with kernels (512 to 4096, 256
        since 4.14), but it is always the one above every state, and what is switched out preempted
        carries it alone: so it is the highest single bit of 256 or more that occurs.
        """
        best = 0
        for e in self.events:
            if e.name != 'sched_switch':
                continue
            state = self.switch(e.body)[2]
            if re.fullmatch(r'\d+|0x[0-9a-f]+', state):
                value = int(state, 0)
                if value >= 256 and value & (value - 1) == 0:
                    best = max(best, value)
        return best


DEAD = {'X', 'Z', 'x', '16', '32', '0x10', '0x20'}


def state_kind(state, plus):
    """'preempted', 'requeued' or None for a task that sleeps, from the text of prev_state."""
    if re.fullmatch(r'\d+|0x[0-9a-f]+', state):
        value = int(state, 0)
        return 'requeued' if value == 0 else 'preempted' if value == plus else None
    return {'R': 'requeued', 'R+': 'preempted'}.get(state)


class Cpu:
    """Who is on one CPU from when: (time, tid, comm), begun by the first switch's prev."""

    def __init__(self, number):
        self.number = number
        self.since, self.tids, self.comms = [], [], []
        self.switches = 0

    def name(self, tid, comm):
        return comm if tid else f'swapper/{self.number}'

    def switch(self, ts, prev, prev_comm, next_, next_comm):
        if not self.since:
            self.since.append(-1)
            self.tids.append(prev)
            self.comms.append(self.name(prev, prev_comm))
        self.since.append(ts)
        self.tids.append(next_)
        self.comms.append(self.name(next_, next_comm))
        self.switches += 1

    def shares(self, start, end):
        """The last switch, the one that ends the wait, is already in."""
        share, comm = collections.Counter(), {}
        i = max(0, bisect.bisect_right(self.since, start) - 1)
        while i < len(self.since) and self.since[i] < end:
            upto = self.since[i + 1] if i + 1 < len(self.since) else end
            span = min(upto, end) - max(self.since[i], start)
            if span > 0:
                share[self.tids[i]] += span
                comm[self.tids[i]] = self.comms[i]
            i += 1
        order = sorted(share.items(), key=lambda item: (-item[1], item[0]))
        return [{'comm': comm[tid], 'tid': tid, 'ns': ns} for tid, ns in order]


class Waits:
    def __init__(self, text, metric=None):
        names = {e.name for e in text.events}
        self.metric = metric or ('waking' if 'sched_waking' in names and 'sched_wakeup' not in names
                                 else 'wakeup')
        self.has_wakeups = bool(names & {'sched_wakeup', 'sched_waking'})
        self.text = text
        self.rows, self.open = [], []
        self.missed = 0
        self.running, self.queued = {}, {}
        self.odd = collections.Counter()       # enqueues of what already runs or waits
        self.plus = text.plus_bit()
        self.run()

    def enqueue(self, e, tid, kind):
        if not tid:
            return
        if kind in ('woken', 'new'):
            if tid in self.running.values():
                self.odd['while running'] += 1
            elif tid in self.queued:
                self.odd['while queued'] += 1
        # since when, kind, migrated, where the waker was
        self.queued[tid] = [e.ts, kind, False, (e.cpu, self.cpu(e.cpu).switches)]

    def cpu(self, number):
        return self.cpus.setdefault(number, Cpu(number))

    def run(self):
        self.cpus, seen, names = {}, set(), {}
        woken = 'sched_wakeup' if self.metric == 'wakeup' else 'sched_waking'
        for e in self.text.events:
            if e.name == woken:
                tid = self.text.task(e.body)
                self.enqueue(e, tid, 'woken')
                seen.add(tid)
            elif e.name == 'sched_wakeup_new':
                tid = self.text.task(e.body)
                self.enqueue(e, tid, 'new')
                seen.add(tid)
            elif e.name == 'sched_process_fork':
                tid = self.text.child(e.body)
                self.queued.pop(tid, None)
                seen.add(tid)
            elif e.name == 'sched_migrate_task':
                tid = self.text.task(e.body)
                if tid in self.queued:
                    q = self.queued[tid]
                    placing = (self.metric == 'waking' and q[1] == 'woken' and
                               q[3] == (e.cpu, self.cpu(e.cpu).switches))
                    q[2] = q[2] or not placing
            elif e.name == 'sched_switch':
                prev, pcomm, state, next_, ncomm = self.text.switch(e.body)
                self.switch(e, prev, pcomm, state, next_, ncomm, seen)
                names[prev], names[next_] = pcomm, ncomm
                seen.update((prev, next_))
        for tid, q in self.queued.items():
            self.open.append({'tid': tid, 'comm': names.get(tid), 'wait_ns': self.text.last - q[0],
                              'kind': 'migrated' if q[2] else q[1], 'open': 'end'})

    def switch(self, e, prev, pcomm, state, next_, ncomm, seen):
        cpu = self.cpu(e.cpu)
        kind = state_kind(state, self.plus)
        if kind:
            self.enqueue(e, prev, kind)
        elif state in DEAD:
            self.queued.pop(prev, None)
        cpu.switch(e.ts, prev, pcomm, next_, ncomm)
        self.running[e.cpu] = next_
        if not next_:
            return
        q = self.queued.pop(next_, None)
        if not q:
            self.missed += 1
            if next_ not in seen and self.has_wakeups:
                self.open.append({'tid': next_, 'comm': ncomm, 'cpu': e.cpu, 'ts_ns': e.ts,
                                  'wait_ns': e.ts - self.text.first, 'open': 'start'})
            return
        self.rows.append({'ts_ns': e.ts, 'comm': ncomm, 'tid': next_, 'cpu': e.cpu,
                          'wait_ns': e.ts - q[0], 'kind': 'migrated' if q[2] else q[1],
                          'start': q[0]})

    def over(self, min_ns):
        """Rows above min_ns, with who ran."""
        for row in self.rows:
            if row['wait_ns'] > min_ns or not min_ns:
                row = dict(row)
                start = row.pop('start')
                row['ran'] = self.cpus[row['cpu']].shares(start, row['ts_ns'])
                yield row

    def summary(self, min_ns):
        waits = sorted(r['wait_ns'] for r in self.rows)
        return {'metric': self.metric, 'waits': len(waits),
                'over': sum(1 for w in waits if w > min_ns or not min_ns),
                'missed': self.missed, 'lost': self.text.lost,
                'open': sum(1 for o in self.open if o['open'] == 'end'),
                'open_start': sum(1 for o in self.open if o['open'] == 'start'),
                'longest_ns': waits[-1] if waits else 0,
                'p99_ns': waits[-(-99 * len(waits) // 100) - 1] if waits else 0,
                'enqueued_while_running': self.odd['while running'],
                'enqueued_while_queued': self.odd['while queued']}


def blur(kind):
    return 'preempted' if kind == 'requeued' else kind


class Comparison:
    """Rows of inlay against ours, matched by time, CPU and task; each difference is a line."""

    def __init__(self, ours, theirs, us, blurred):
        # a recording in ns against its text in us: each time was cut; else nothing may differ
        self.unit = 1000 if us and any(r['ts_ns'] % 1000 for r in theirs) else 1
        self.blurred = blurred
        self.differences = []
        mine, other = self.index(ours), self.index(theirs)
        for key in sorted(mine.keys() | other.keys()):
            a, b = mine.get(key, []), other.get(key, [])
            for i in range(max(len(a), len(b))):
                if i >= len(a):
                    self.differences.append(f'extra: {b[i]}')
                elif i >= len(b):
                    self.differences.append(f'missing: {a[i]}')
                else:
                    self.row(a[i], b[i])

    def time(self, ns):
        return ns // self.unit

    def index(self, rows):
        out = collections.defaultdict(list)
        for row in rows:
            out[self.time(row['ts_ns']), row['cpu'], row['tid']].append(row)
        return out

    def row(self, a, b):
        def fields(r):
            kind = blur(r['kind']) if self.blurred else r['kind']
            return {'comm': r['comm'], 'wait': r['wait_ns'], 'kind': kind}
        fa, fb = fields(a), fields(b)
        if self.unit > 1 and abs(fa['wait'] - fb['wait']) <= self.unit:
            fa['wait'] = fb['wait'] = 0        # each of the two times was cut to the microsecond
        for name in fa:
            if fa[name] != fb[name]:
                self.differences.append(f'{name}: {fa[name]} here, {fb[name]} there: {b}')
        if sum(r['ns'] for r in b['ran']) != b['wait_ns']:
            self.differences.append(f'shares do not sum to the wait: {b}')
        self.ran(a, b)

    def ran(self, a, b):
        if self.unit == 1:
            if [(r['tid'], r['ns'], r['comm']) for r in a['ran']] != \
                    [(r['tid'], r['ns'], r['comm']) for r in b['ran']]:
                self.differences.append(f'ran: {a["ran"]} here, {b["ran"]} there: {b["ts_ns"]}')
            return
        mine = {r['tid']: r['ns'] for r in a['ran']}
        other = {r['tid']: r['ns'] for r in b['ran']}
        for tid in mine.keys() | other.keys():
            # a share is made of spans, and each end of each was cut
            slack = self.unit * (len(a['ran']) + len(b['ran']) + mine.get(tid, 0) // 100000)
            if abs(mine.get(tid, 0) - other.get(tid, 0)) > slack:
                self.differences.append(f'ran: tid {tid} {mine.get(tid)} here, {other.get(tid)} '
                                        f'there: {b["ts_ns"]}')


def read_rows(path):
    """Rows of inlay's --json: (rows, open rows, summary or None)"""
    rows, opened, summary = [], [], None
    for line in sys.stdin if path == '-' else open(path):
        obj = json.loads(line)
        if 'summary' in obj:
            summary = obj['summary']
        elif obj.get('open'):
            opened.append(obj)
        else:
            rows.append(obj)
    return rows, opened, summary


def compare(waits, ours, args):
    rows, opened, summary = read_rows(args.compare)
    if args.at_least < 1:
        sys.exit('waits.py: --at-least must be 1 or more')
    comparison = Comparison(ours, rows, waits.text.digits < 9, waits.text.plugin)
    problems = comparison.differences
    for what, count in (('here', len(ours)), ('there', len(rows))):
        if count < args.at_least:
            problems.append(f'only {count} rows {what}, {args.at_least} wanted')
    mine = waits.summary(args.min_ns)
    for name in ('waits', 'over') + (('missed',) if waits.has_wakeups else ()):
        if summary and name in summary and summary[name] != mine[name]:
            problems.append(f'{name}: {mine[name]} here, {summary[name]} there')
    if args.open:
        ours_open, theirs_open = (sorted((r['tid'], r['open'], r['wait_ns'] // comparison.unit)
                                         for r in some) for some in (waits.open, opened))
        if ours_open != theirs_open:
            problems.append(f'open rows: {ours_open} here, {theirs_open} there')
    for line in problems[:args.show]:
        print(f'waits.py: {line}')
    if problems:
        print(f'independent check: {len(problems)} differences in {len(ours)} rows')
        return 1
    what = 'task, CPU, wait, kind and who ran'
    unit = 'nanosecond' if waits.text.digits >= 9 else 'microsecond'
    print(f'independent check: {len(ours)} rows over {args.min_ns / 1e6:g} ms equal to the {unit} '
          f'({what})')
    return 0


def main():
    parser = argparse.ArgumentParser(description='Run-queue waits from a text rendering.')
    parser.add_argument('--min-ns', type=int, default=0)
    parser.add_argument('--metric', choices=('wakeup', 'waking'))
    parser.add_argument('--compare', metavar='ROWS', help="inlay's --json output, - for stdin")
    parser.add_argument('--at-least', type=int, default=1, metavar='N')
    parser.add_argument('--show', type=int, default=10, metavar='N', help='differences to print')
    parser.add_argument('--open', action='store_true', help='print, or compare, open rows too')
    parser.add_argument('file')
    args = parser.parse_args()
    waits = Waits(Text(args.file), args.metric)
    ours = list(waits.over(args.min_ns))
    if args.compare:
        sys.exit(compare(waits, ours, args))
    for row in ours + (waits.open if args.open else []):
        print(json.dumps(row, separators=(',', ':')))
    print(json.dumps({'summary': waits.summary(args.min_ns)}, separators=(',', ':')))


if __name__ == '__main__':
    main()

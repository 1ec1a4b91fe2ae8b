#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""inlay's rows against the independent computation: test_rows.py INLAY

Every recording at the threshold named beside it: task, CPU, wait, kind, who ran; none missing, none
extra, 20 at least. The texts of the trace.dat files that do not ship are rendered here. The three
storages must print the same bytes, and so must a second run.
"""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../structure')]
import tree  # noqa: E402

DATA = os.path.join(HERE, '../data')
SHARED = os.path.join(os.environ.get('INLAY_SHARED') or os.path.join(tree.ROOT, '../shared'), 'traces')

# recording, its text (None: rendered by trace-cmd, '': it is text itself), threshold in us
SHIPPED = [('hog.perf.data.zst', 'hog.perf.txt.xz', 1000), ('hog.perf.data.zst', 'hog.perf.txt.xz', 0),
           ('throttled.perf.data.xz', 'throttled.perf.txt.xz', 1000),
           ('storm.trace.dat.zst', 'storm.trace.txt.xz', 1000),
           ('storm.trace.dat.zst', 'storm.trace.txt.xz', 0), ('hog.ftrace.txt.gz', '', 1000),
           ('hog.perf.txt.xz', '', 1000), ('throttled.perf.txt.xz', '', 1000),
           ('storm.trace.txt.xz', '', 1000)]
FOREIGN = [('lisa-sched_load.trace.dat', None, 100), ('lisa-example_rtapp.trace.dat', None, 100),
           ('lisa-trace.txt.gz', '', 50), ('traceshark-4cpu-ramload.asc.xz', '', 50)]


def rows_of(inlay, recording, us, *options):
    return subprocess.run([inlay, 'runqslower', '-i', recording, '--json', *options, f'{us}us'],
                          capture_output=True, timeout=240)


def check(tap, inlay, folder, recording, text, us, tmp):
    path = os.path.join(folder, recording)
    name = f'{recording} at {us} us: rows equal the independent computation'
    if not os.path.exists(path):
        tap.skip(name, 'the recording is not here')
        return
    if text is None:
        if not shutil.which('trace-cmd'):
            tap.skip(name, 'no trace-cmd to render it with')
            return
        text_path = os.path.join(tmp, recording + '.txt')
        with open(text_path, 'wb') as f:
            subprocess.run(['trace-cmd', 'report', '-t', '-R', path], stdout=f, stderr=subprocess.DEVNULL)
    else:
        text_path = os.path.join(folder, text or recording)
    done = rows_of(inlay, path, us)
    if done.returncode:
        tap.ok(False, name, [f'exit status {done.returncode}', *done.stderr.decode().splitlines()])
        return
    said = subprocess.run([sys.executable, os.path.join(HERE, 'waits.py'), '--min-ns', str(us * 1000), '--open',
                           '--at-least', '20', '--compare', '-', text_path], input=done.stdout, capture_output=True)
    tap.ok(said.returncode == 0, name, (said.stdout + said.stderr).decode().splitlines())


def main():
    tap = tree.Tap()
    inlay = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as tmp:
        for recording, text, us in SHIPPED:
            check(tap, inlay, DATA, recording, text, us, tmp)
        for recording, text, us in FOREIGN:
            check(tap, inlay, SHARED, recording, text, us, tmp)
    for recording in sorted({r for r, _, _ in SHIPPED if not r.split('.')[2].startswith('txt')}):
        outs = [rows_of(inlay, os.path.join(DATA, recording), 1000, *options) for options in
                ((), (), ('--storage', 'task'), ('--storage', 'hash'), ('--storage', 'hash-noprealloc'))]
        rows = [[l for l in o.stdout.splitlines() if b'"summary"' not in l] for o in outs]
        tap.ok(outs[0].stdout == outs[1].stdout and len(rows[0]) >= 20 and not outs[0].returncode,
               f'{recording}: two runs give the same bytes')
        tap.ok(all(r == rows[0] for r in rows) and len(rows[0]) >= 20,
               f'{recording}: the three storages give the same rows')
    tap.done()


if __name__ == '__main__':
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Puts faults into the source, one at a time, and asks whether the tests notice.

    scripts/faults.py [--list] [--only NAME]... [--keep DIR]

Works in a copy of the tree. The faults are in scripts/faults.txt: a name, a file, the suites that
should notice, the lines as they are (-) and as the fault makes them (+). A fault whose lines are
not in its file exactly once, or that does not compile, is an error of the list. Exits 1 if more
than one fault goes unnoticed, or on an error.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Fault:
    def __init__(self, block):
        self.name = re.search(r'^fault: (.+)$', block, re.M)[1]
        self.file = re.search(r'^file: (\S+)$', block, re.M)[1]
        self.suites = re.search(r'^suites: (.+)$', block, re.M)[1].split()
        self.old = ''.join(l[1:] + '\n' for l in block.splitlines() if l.startswith('-'))
        self.new = ''.join(l[1:] + '\n' for l in block.splitlines() if l.startswith('+'))
        if not self.old:
            raise ValueError(f'{self.name}: no line to replace')

    def text(self, tree):
        with open(os.path.join(tree, self.file)) as f:
            return f.read()

    def places(self, tree):
        """How often the file in the tree has the lines."""
        return ('\n' + self.text(tree)).count('\n' + self.old)

    def put(self, tree):
        """Changes the file in the tree; gives its old text, or None if the lines are not there once."""
        path, text = os.path.join(tree, self.file), self.text(tree)
        if self.places(tree) != 1:
            return None
        with open(path, 'w') as f:
            f.write(('\n' + text).replace('\n' + self.old, '\n' + self.new)[1:])
        return text


def read_list(path):
    with open(path) as f:
        blocks = re.split(r'\n\s*\n', re.sub(r'^#.*\n', '', f.read(), flags=re.M))
    return [Fault(b) for b in blocks if b.strip()]


def copy_tree(to):
    names = subprocess.run(['git', '-C', TOP, 'ls-files', '-co', '--exclude-standard', '-z'],
                           capture_output=True, check=True).stdout.split(b'\0')
    for name in filter(None, names):
        src, dst = os.path.join(os.fsencode(TOP), name), os.path.join(os.fsencode(to), name)
        if os.path.isfile(src):
            os.makedirs(os.path.dirname(dst), exist_ok=True)
            shutil.copy2(src, dst)


def build(tree):
    done = subprocess.run(['ninja', '-C', f'{tree}/build'], capture_output=True, text=True)
    return done.returncode == 0, done.stdout


def failing(tree, suites):
    """The tests of the suites that fail, and how many ran."""
    cmd = ['meson', 'test', '-C', f'{tree}/build', '--no-rebuild']
    for suite in suites:
        cmd += ['--suite', suite]
    env = dict(os.environ, INLAY_SHARED=os.environ.get('INLAY_SHARED', os.path.join(TOP, '../shared')))
    subprocess.run(cmd, capture_output=True, env=env)
    with open(f'{tree}/build/meson-logs/testlog.json') as f:
        tests = [json.loads(line) for line in f]
    return [t['name'] for t in tests if t['result'] not in ('OK', 'SKIP', 'EXPECTEDFAIL')], len(tests)


def try_fault(tree, fault):
    """('caught'|'MISSED'|'ERROR', why)"""
    text = fault.put(tree)
    if text is None:
        return 'ERROR', f'its lines are not in {fault.file} exactly once'
    path = os.path.join(tree, fault.file)
    try:
        good, out = build(tree)
        if not good:
            why = [l for l in out.splitlines() if 'error' in l]
            return 'ERROR', 'does not build: ' + (why[0] if why else out[-200:])
        bad, ran = failing(tree, fault.suites)
        return ('caught', 'by ' + ', '.join(bad)) if bad else ('MISSED', f'{ran} tests passed')
    finally:
        with open(path, 'w') as f:
            f.write(text)


def main():
    parser = argparse.ArgumentParser(description='Puts faults into the source and runs the tests.')
    parser.add_argument('--list', action='store_true', help='name the faults and stop')
    parser.add_argument('--only', action='append', metavar='NAME', help='faults whose name holds this')
    parser.add_argument('--keep', metavar='DIR', help='work in this folder and leave it there')
    args = parser.parse_args()
    faults = [f for f in read_list(os.path.join(TOP, 'scripts/faults.txt'))
              if not args.only or any(o in f.name for o in args.only)]
    if args.list:
        for fault in faults:
            print(f'{fault.name} ({fault.file}; {" ".join(fault.suites)})')
        return 0
    if not faults:
        sys.exit('faults: none of that name')
    tree = args.keep or tempfile.mkdtemp(prefix='inlay-faults-')
    os.makedirs(tree, exist_ok=True)
    count = {'caught': 0, 'MISSED': 0, 'ERROR': 0}
    try:
        copy_tree(tree)
        if not os.path.exists(f'{tree}/build/build.ninja'):
            subprocess.run(['meson', 'setup', f'{tree}/build', tree], check=True, stdout=subprocess.DEVNULL)
        good, out = build(tree)
        if not good:
            sys.exit('faults: the tree itself does not build:\n' + out[-2000:])
        suites = sorted({s for f in faults for s in f.suites})
        bad, ran = failing(tree, suites)
        if bad or not ran:
            sys.exit(f'faults: without any fault, of {ran} tests these fail: {" ".join(bad)}')
        for fault in faults:
            start = time.monotonic()
            result, why = try_fault(tree, fault)
            count[result] += 1
            print(f'{result:7} {fault.name}: {why} ({time.monotonic() - start:.0f} s)', flush=True)
    finally:
        if not args.keep:
            shutil.rmtree(tree, ignore_errors=True)
    print(f'{count["caught"]} caught, {count["MISSED"]} missed, {count["ERROR"]} errors, of {len(faults)}')
    return 1 if count['ERROR'] or count['MISSED'] > 1 else 0


if __name__ == '__main__':
    sys.exit(main())

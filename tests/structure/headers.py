#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every header under src/, include/ and cli/ compiles alone, and twice: headers.py BUILD_DIR

The flags are those the build itself uses, from its compile_commands.json.
"""
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import tree


def flags_of(build):
    """folder of source -> (compiler, flags) of one command that compiles a file there"""
    out = {}
    with open(os.path.join(build, 'compile_commands.json')) as f:
        commands = json.load(f)
    for entry in commands:
        words = shlex.split(entry['command'])
        keep, at = [], 1
        while at < len(words):
            if words[at] in ('-MF', '-MQ', '-MT', '-o'):
                at += 2
                continue
            if words[at][:2] in ('-I', '-D', '-W', '-f', '-m', '-p') or words[at].startswith('-std') \
                    or words[at].startswith('-isystem'):
                keep.append(words[at])
                if words[at] == '-isystem':
                    at += 1
                    keep.append(words[at])
            at += 1
        source = os.path.relpath(os.path.realpath(os.path.join(entry['directory'], entry['file'])), tree.ROOT)
        folder = os.path.dirname(source)
        out.setdefault(folder, (words[0], keep, entry['directory']))
    return out


def compiles(text, compiler, flags, directory):
    done = subprocess.run([compiler, *flags, '-I', os.path.join(tree.ROOT, 'src'), '-fsyntax-only', '-x', 'c', '-'],
                          input=text, text=True, capture_output=True, cwd=directory)
    return done.returncode == 0, done.stderr


def main():
    tap = tree.Tap()
    build = sys.argv[1] if len(sys.argv) > 1 else os.path.join(tree.ROOT, 'build')
    flags = flags_of(build)
    some = flags.get('src/base') or next(iter(flags.values()))
    tap.ok(not compiles('struct inner_missing f(struct other *o) { return *o; }', *some)[0],
           'the check refuses a header that needs another before it')
    headers = [h for folder in ('src/', 'include/', 'cli/') for h in tree.files('.h', under=folder)]
    tap.ok(len(headers) > 20, f'{len(headers)} headers are looked at')

    def one(header):
        folder = os.path.dirname(header)
        while folder and folder not in flags:
            folder = os.path.dirname(folder)
        own = os.path.join(tree.ROOT, header)
        return header, *compiles(f'#include "{own}"\n#include "{own}"\n', *flags.get(folder, some))

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = list(pool.map(one, headers))
    tap.none([f'{h}: {err.strip().splitlines()[0] if err.strip() else "failed"}'
              for h, good, err in results if not good], 'every header compiles alone, and twice')
    tap.done()


if __name__ == '__main__':
    main()

# SPDX-License-Identifier: BSD-2-Clause
"""No program that comes with inlay is left to the interpreter: test_compiled.py INLAY OBJECT..."""
import os
import subprocess
import sys

inlay, objects = sys.argv[1], sys.argv[2:]


def dump(*args):
    return subprocess.run([inlay, 'dump', *args], capture_output=True, text=True)


def main():
    probe = dump('jited', objects[0])
    if 'no disassembler' in probe.stderr:
        print('1..0 # SKIP no disassembler for this machine')
        return
    for nr, path in enumerate(objects, 1):
        # of an object with an interpreted program this fails, and the engine warns while it loads
        ret = dump('jited', path)
        good = not ret.returncode and 'interpreted' not in ret.stderr and ret.stdout.count(' ret') > 0
        if not good:
            print('#', ret.stderr.replace('\n', '\n# '))
        print('ok' if good else 'not ok', nr, '-', os.path.basename(path), 'is compiled')
    ret = dump('--interp', 'jited', objects[0])
    good = ret.returncode != 0 and 'is interpreted' in ret.stderr
    print('ok' if good else 'not ok', len(objects) + 1, '- which an interpreted one would not pass')
    print('1..%d' % (len(objects) + 1))


main()

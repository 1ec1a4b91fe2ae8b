#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The last line of `./bootstrap check` counts what it should: scripts/summary.py on made-up runs."""
import json
import os
import subprocess
import sys
import tempfile

import tree


def summary(*tests):
    with tempfile.NamedTemporaryFile('w', suffix='.json') as f:
        for name, result, out in tests:
            f.write(json.dumps({'name': name, 'result': result, 'stdout': out, 'returncode': 0,
                                'duration': 1.0}) + '\n')
        f.flush()
        done = subprocess.run([sys.executable, os.path.join(tree.ROOT, 'scripts/summary.py'), f.name],
                              capture_output=True, text=True)
    return done.stdout.splitlines()[-1], done.returncode, done.stdout


def main():
    tap = tree.Tap()
    good = ('a', 'OK', 'ok 1 - x\nok 2 - y # SKIP no kernel\n1..2\n')
    for what, tests, last, status in (
            ('subtests are counted', [good], '1 passed, 0 failed, 1 skipped', 0),
            ('a failed subtest is', [good, ('b', 'FAIL', 'not ok 1 - z\n1..1\n')], '1 passed, 1 failed, 1 skipped', 1),
            ('a crash after good subtests is one failure', [('c', 'FAIL', 'ok 1 - x\n')], '1 passed, 1 failed, 0 skipped', 1),
            ('a plan not kept is one failure', [('d', 'ERROR', 'ok 1 - x\n1..9\n')], '1 passed, 1 failed, 0 skipped', 1),
            ('a timeout that said nothing is one failure', [good, ('e', 'TIMEOUT', '')], '1 passed, 1 failed, 1 skipped', 1),
            ('a test that is not TAP counts once', [('f', 'OK', '')], '1 passed, 0 failed, 0 skipped', 0),
            ('a test skipped whole counts once', [good, ('g', 'SKIP', '1..0 # SKIP not root\n')], '1 passed, 0 failed, 2 skipped', 0),
            ('no tests at all is a failure', [], '0 passed, 0 failed, 0 skipped', 1)):
        got = summary(*tests)
        tap.ok(got[:2] == (last, status), what, [got[2]])
    tap.done()


if __name__ == '__main__':
    main()

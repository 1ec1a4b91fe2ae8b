# SPDX-License-Identifier: BSD-2-Clause
"""What the structure tests share: the source tree, C without its comments, and TAP."""
import os
import re
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))


def files(*suffixes, under=''):
    """Paths (relative to the root, sorted) of the project's files with one of the suffixes."""
    try:
        out = subprocess.run(['git', '-C', ROOT, 'ls-files', '-co', '--exclude-standard'],
                             capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):       # a source archive
        out = [os.path.relpath(os.path.join(d, f), ROOT)
               for d, _, names in os.walk(ROOT) for f in names
               if not re.match(r'(\./)?(build|\.git)', os.path.relpath(d, ROOT))]
    return sorted({f for f in out if f.endswith(suffixes or '') and f.startswith(under)
                   and os.path.isfile(os.path.join(ROOT, f))})


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as f:
        return f.read()


def blank(m):
    return re.sub(r'[^\n]', ' ', m[0])


def code(text):
    """C with comments and the insides of strings blanked; lines keep their numbers."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
                  lambda m: blank(m) if m[0][0] == '/' else m[0][0] + blank(m)[1:-1] + m[0][-1],
                  text, flags=re.S)


def without_comments(text):
    """C with comments blanked and strings kept."""
    return re.sub(r'("(?:\\.|[^"\\\n])*")|/\*.*?\*/|//[^\n]*',
                  lambda m: m[1] if m[1] else blank(m), text, flags=re.S)


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def ok(self, good, name, why=()):
        self.count += 1
        self.failed += not good
        print(f'{"ok" if good else "not ok"} {self.count} - {name}', flush=True)
        for line in [] if good else list(why)[:40]:
            print(f'# {line}')
        return good

    def none(self, problems, name):
        """Passes if the list of problems is empty; else they are shown."""
        return self.ok(not problems, name, problems)

    def skip(self, name, why):
        self.count += 1
        print(f'ok {self.count} - {name} # SKIP {why}')

    def done(self):
        print(f'1..{self.count}')
        sys.exit(1 if self.failed else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Sizes, licence lines, architecture conditionals and words, in every file of the tree."""
import re

import tree

FILE_LINES, FUNCTION_LINES = 1200, 120
ARCH = re.compile(r'^\s*#\s*(?:el)?if.*(__x86_64__|__i386__|__aarch64__|__arm__|__riscv|__amd64__)', re.M)
# in two halves each, so that this file passes its own check
WORDS = [a + b for a, b in (('TO', 'DO'), ('FIX', 'ME'), ('XX', 'X'), ('not imple', 'mented'),
                            ('unimple', 'mented'), ('for no', 'w'), ('ha', 'ck'))]
PATHS = [a + b for a, b in (('/wo', 'rk/'), ('/ho', 'me/'), ('/tmp/b', '-'))]
SOURCES = ('.c', '.h', '.def', '.py', '.sh', 'meson.build')


def functions(text):
    """(name, first line, lines, lines of the body) of each function definition in kernel style."""
    lines = tree.code(text).splitlines()
    for n, line in enumerate(lines):
        if line.rstrip() != '{':
            continue
        head, at = [], n - 1
        while at >= 0 and lines[at].strip() and not re.search(r'[;}]\s*$|^#', lines[at]):
            head.insert(0, lines[at])
            at -= 1
        name = re.search(r'(\w+)\s*\(', ' '.join(head))
        if not name or re.search(r'=\s*$', ' '.join(head)):
            continue
        end = next((i for i in range(n, len(lines)) if lines[i].startswith('}')), len(lines) - 1)
        yield name[1], n + 1, end - n + 1, lines[n + 1:end]


def is_flat_dispatcher(body):
    """One switch at the top whose cases are a line or two each: as long as the table it is."""
    switches = [l for l in body if re.match(r'\tswitch \(', l)]
    cases = sum(1 for l in body if re.match(r'\t+(case\b.*:|default:|[A-Z][A-Z0-9_]+\(.*\);?$)', l))
    return len(switches) == 1 and cases * 5 >= len(body) * 2


def check_sizes(path, text):
    count = text.count('\n')
    if count > FILE_LINES:
        yield f'{path}: {count} lines'
    if path.endswith(('.c', '.h')):
        for name, at, size, body in functions(text):
            if size > FUNCTION_LINES and not is_flat_dispatcher(body):
                yield f'{path}:{at}: {name} has {size} lines'


def check_licence(path, text):
    head = '\n'.join(text.splitlines()[:2])
    if not re.search(r'SPDX-License-Identifier: \(?(BSD-2-Clause|GPL-2.0-only OR BSD-2-Clause'
                     r'|GPL-2.0 OR BSD-2-Clause|BSD-2-Clause OR GPL-2.0(-only)?)\)?', head):
        yield f'{path}: no licence line'


def check_arch(path, text):
    if path == 'src/base/arch.h' or path.startswith('src/exec/jit/'):
        return
    for m in ARCH.finditer(tree.code(text)):
        yield f'{path}: {m[0].strip()}'


def check_words(path, text):
    for n, line in enumerate(text.splitlines(), 1):
        for word in WORDS:
            if re.search(rf'(?<![\w]){re.escape(word)}(?![\w])', line):
                yield f'{path}:{n}: "{word}"'
        for start in PATHS:
            if re.search(rf'(?<![\w.]){re.escape(start)}', line):
                yield f'{path}:{n}: a path under {start}'


def check_folders(path, text):
    """A test's folder goes with its process, also where the test ends early."""
    if 'mkd' + 'temp(' in text:
        yield f'{path}: a folder that stays; tempfile.TemporaryDirectory'


def main():
    tap = tree.Tap()
    long_function = 'int f(int x)\n{\n' + '\tx++;\n' * 130 + '}\n'
    table = 'int f(int x)\n{\n\tswitch (x) {\n' + '\tcase 1:\n\t\treturn 2;\n' * 70 + '\t}\n\treturn 0;\n}\n'
    array = 'static const struct row rows[] =\n{\n' + '\tROW(1),\n' * 130 + '};\n'
    tap.ok(list(check_sizes('x.c', long_function)), 'the size check finds a function that is too long')
    tap.ok(not list(check_sizes('x.c', table + array)), 'and lets a flat dispatcher and a table pass')
    tap.ok(list(check_sizes('x.c', '\n' * 1300)), 'the size check finds a file that is too long')
    tap.ok(list(check_licence('x.c', '#include <stdio.h>\n')), 'the licence check finds a file without one')
    tap.ok(list(check_arch('src/maps/x.c', '#if defined(__x86_64__)\n#endif\n'))
           and not list(check_arch('src/exec/jit/x86.c', '#ifdef __x86_64__\n#endif\n')),
           'the architecture check knows where conditionals may stand')
    tap.ok(list(check_words('x.c', f'/* {WORDS[0]} later */')) and list(check_words('x', f'a {PATHS[0]}b'))
           and not list(check_words('x.c', 'mkstemp("aXXXXXX")')), 'the word check finds words and paths')

    tap.ok(list(check_folders('x.py', 'tempfile.mkd' + 'temp()')), 'the folder check finds a folder that stays')

    sources = tree.files(*SOURCES)
    tap.ok(len(sources) > 50, f'{len(sources)} files of source are looked at')
    for check, what, names in (
            (check_sizes, f'no file above {FILE_LINES} lines, no function above {FUNCTION_LINES}', sources),
            (check_licence, 'every source file begins with its licence', sources),
            (check_arch, 'conditionals on the architecture stand in base/arch.h and exec/jit/ only',
             tree.files('.c', '.h', under='src/') + tree.files('.c', '.h', under='cli/')),
            (check_folders, 'no test leaves a folder behind', tree.files('.py', under='tests/')),
            (check_words, 'no file holds a word of unfinished work or a path of one machine',
             [f for f in tree.files(*SOURCES, '.md', '.scd', '.txt', 'Makefile', 'bootstrap')])):
        tap.none([p for f in names for p in check(f, tree.read(f))], what)
    tap.done()


if __name__ == '__main__':
    main()

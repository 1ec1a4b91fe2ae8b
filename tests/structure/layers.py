#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The layers: a file includes only from its own folder or from one ranked below it.

The order is the one of the subdir('src/...') lines in the root meson.build.
"""
import os
import re

import tree

ORDER = re.findall(r"^subdir\('src/(\w+)'\)", tree.read('meson.build'), re.M)
NAMES_AN_ID = re.compile(r'\bBPF_(?:FUNC|MAP_TYPE|PROG_TYPE)_\w+')


def includes(text):
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', tree.without_comments(text), re.M)


def check_includes(path, text, order, exists):
    """Problems of one file under src/: upward, into another folder's private header, unknown."""
    own = path.split('/')[1]
    for inc in includes(text):
        folder = inc.split('/')[0]
        if inc.startswith('inlay/') or not exists(f'src/{inc}'):
            beside = f'{os.path.dirname(path)}/{inc}'
            if not inc.startswith('inlay/') and '/' in inc and folder in order:
                yield f'{path}: {inc} is not there'
            elif '..' in inc:
                yield f'{path}: {inc} leaves its folder'
            elif not inc.startswith('inlay/') and exists(beside) and inc.endswith('.h'):
                yield f'{path}: {inc} is written without its folder'
            continue
        if folder not in order:
            yield f'{path}: {inc} is from no layer'
        elif order.index(folder) > order.index(own):
            yield f'{path}: {inc} is from a higher layer'
        elif folder != own and inc.endswith('_int.h'):
            yield f'{path}: {inc} is private to {folder}'


def check_ids(path, text):
    for n, line in enumerate(tree.without_comments(text).splitlines(), 1):
        for m in NAMES_AN_ID.finditer(line):
            yield f'{path}:{n}: names {m[0]}'


def main():
    tap = tree.Tap()
    there = set(tree.files('.h', '.c', '.def', under='src/')) | set(tree.files('.h', under='include/'))
    tap.ok(len(ORDER) >= 15 and ORDER[0] == 'base' and ORDER[-1] == 'world',
           f'the order of the {len(ORDER)} layers is read from meson.build')
    tap.ok(sorted(ORDER) == sorted({f.split('/')[1] for f in there if f.startswith('src/')}),
           'every folder under src/ is a layer')
    bad = {'up': ('src/btf/x.c', '#include "sys/sys.h"\n'),
           'private': ('src/sys/x.c', '#include "btf/btf_int.h"\n'),
           'gone': ('src/sys/x.c', '#include "btf/no_such.h"\n'),
           'bare': ('src/btf/x.c', '#include "btf.h"\n'),
           'outside': ('src/btf/x.c', '#include "../sys/sys.h"\n')}
    fake = {'src/sys/sys.h', 'src/btf/btf_int.h', 'src/btf/btf.h'}
    for name, (path, text) in bad.items():
        tap.ok(list(check_includes(path, text, ORDER, fake.__contains__)),
               f'the layer check finds an include that is wrong: {name}')
    tap.ok(not list(check_includes('src/sys/x.c', '#include "btf/btf.h"\n// #include "world/x.h"\n',
                                   ORDER, fake.__contains__)), 'and lets a downward one pass')
    problems = [p for f in sorted(there) if f.startswith('src/')
                for p in check_includes(f, tree.read(f), ORDER, there.__contains__)]
    tap.none(problems, 'no file under src/ includes from a higher layer')

    outer = [f'{f}: includes {i}' for f in tree.files('.c', '.h', under='src/')
             for i in includes(tree.read(f)) if re.match(r'(cli|tests|bench|fuzz)/', i)]
    tap.none(outer, 'nothing under src/ includes from cli, tests, bench or fuzz')

    tap.ok(len(list(check_ids('x', 'a = BPF_FUNC_x; /* BPF_FUNC_y */\nb = BPF_MAP_TYPE_HASH;'))) == 2,
           'the id check finds names in code and not in comments')
    named = [p for folder in ('verifier', 'rewrite', 'exec')
             for f in tree.files('.c', '.h', '.def', under=f'src/{folder}/')
             for p in check_ids(f, tree.read(f))]
    tap.none(named, 'verifier, rewrite and exec name no helper, map type or program type')
    tap.done()


if __name__ == '__main__':
    main()

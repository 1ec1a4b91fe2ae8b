#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every symbol a folder exports says where it comes from: symbols.py BUILD_DIR

It begins with the folder's word or with the name of one of the folder's headers (strbuf_ from
base/strbuf.h), so that the place of a function can be told from a call of it.
"""
import os
import re
import subprocess
import sys

import tree

WORDS = {'rcu': ['rcu_'], 'isa': ['isa_'], 'btf': ['btf_'], 'env': ['env_'],
         'object': ['obj_', 'prog_', 'map_', 'link_', 'inlay_'], 'maps': ['map_', 'maps_', 'lstore_'],
         'helpers': ['helper_', 'helpers_', 'kfunc_'], 'progtypes': ['prog_', 'progtype_'], 'verifier': ['vrf_'],
         'rewrite': ['rw_'], 'exec': ['exec_', 'interp_', 'jit_'], 'sys': ['sys_', 'user_', 'inlay_'],
         'replay': ['rec_', 'replay_'], 'world': ['world_', 'inlay_']}


def exported(library):
    """Global symbols defined in a static library."""
    out = subprocess.run(['nm', '-g', '--defined-only', library], capture_output=True, text=True).stdout
    return [m[1] for m in re.finditer(r'^[0-9a-f]+ [A-Z] (\S+)$', out, re.M)]


def prefixes(folder, headers):
    stems = {os.path.basename(h)[:-2].removesuffix('_int') for h in headers}
    return tuple(WORDS.get(folder, [])) + tuple(s + '_' for s in stems)


def strays(symbols, allowed):
    return [s for s in symbols if not s.startswith(allowed) and s.rstrip('0123456789') + '_' not in allowed
            and not s.startswith('__')]


def main():
    tap = tree.Tap()
    build = sys.argv[1] if len(sys.argv) > 1 else os.path.join(tree.ROOT, 'build')
    tap.ok(strays(['btf_parse', 'parse'], prefixes('btf', ['src/btf/walk.h'])) == ['parse'],
           'the check finds a symbol without its folder\'s prefix')
    tap.ok(not strays(['walk_next', 'btf_x'], prefixes('btf', ['src/btf/walk.h'])),
           'and takes one with the name of a header there')
    problems, seen, total = [], {}, 0
    for folder in re.findall(r"^subdir\('src/(\w+)'\)", tree.read('meson.build'), re.M):
        library = os.path.join(build, f'src/{folder}/libinlay_{folder}.a')
        if not os.path.exists(library):
            problems.append(f'{folder}: no library in the build')
            continue
        symbols = exported(library)
        total += len(symbols)
        allowed = prefixes(folder, tree.files('.h', under=f'src/{folder}/'))
        problems += [f'{folder}: {s}' for s in strays(symbols, allowed)]
        for s in symbols:
            if seen.setdefault(s, folder) != folder:
                problems.append(f'{s} is in {seen[s]} and in {folder}')
    tap.ok(total > 100, f'{total} symbols are looked at')
    tap.none(problems, 'every exported symbol has its folder\'s prefix, and one home')
    tap.done()


if __name__ == '__main__':
    main()

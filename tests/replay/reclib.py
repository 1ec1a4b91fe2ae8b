# SPDX-License-Identifier: BSD-2-Clause
"""Running rec_dump and comparing what it prints."""
import difflib
import os
import subprocess
import sys
import tempfile

DUMP = os.environ.get('REC_DUMP') or sys.argv[1]
folder = tempfile.TemporaryDirectory(prefix='inlay-rec-')  # gone with the process
DIR = folder.name


def path(name):
    return os.path.join(DIR, name)


def put(name, data):
    p = path(name)
    with open(p, 'wb') as f:
        f.write(data)
    return p


def dump(file, *opts, stdin=None, env=None, timeout=60):
    """(exit status, stdout lines, stderr text)"""
    e = dict(os.environ, **(env or {}))
    r = subprocess.run([DUMP, *opts, file], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=e,
                       timeout=timeout)
    return r.returncode, r.stdout.decode(errors='surrogateescape').splitlines(), r.stderr.decode(errors='replace')


def info(file, *opts, **kw):
    st, out, err = dump(file, '-i', *opts, **kw)
    d = dict(line.split('=', 1) for line in out)
    return {k: int(v) if v.isdigit() else v for k, v in d.items()}, err


def differ(want, got):
    if want == got:
        return ''
    return '\n'.join(list(difflib.unified_diff(want, got, 'want', 'got', lineterm='', n=0))[:12]) or 'differ'


def which(cmd):
    return any(os.access(os.path.join(d, cmd), os.X_OK) for d in os.environ.get('PATH', '').split(':') + ['/usr/sbin'])


def shared(name):
    """A file beside the project, or None."""
    for base in (os.environ.get('INLAY_SHARED'), os.path.join(os.path.dirname(__file__), '../../../shared')):
        if base and os.path.exists(os.path.join(base, name)):
            return os.path.join(base, name)
    return None

# SPDX-License-Identifier: BSD-2-Clause
"""A short run over seeds of every format: test_fuzz.py FUZZ_RECORDING FUZZ_RECORDING_CHILD [ITERATIONS]

The first harness runs the real children, the second answers for them and lies.
"""
import os
import subprocess
import sys
import tempfile

from tap import done, ok

fuzz, liar = sys.argv[1:3]
n = int(sys.argv[3]) if len(sys.argv) > 3 else 400
here = os.path.dirname(os.path.abspath(__file__))
folder = tempfile.TemporaryDirectory(prefix='inlay-corpus-')  # gone with the process
corpus = folder.name
subprocess.run([sys.executable, os.path.join(here, 'make_corpus.py'), corpus], check=True)
for exe, kind, share in ((fuzz, 'text', 5), (fuzz, 'perf', 1), (fuzz, 'dat', 1), (liar, 'perf', 5), (liar, 'dat', 5)):
    r = subprocess.run([exe, '--iterations', str(n * share), '-q', '--timeout', '60', os.path.join(corpus, kind)],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    ok(r.returncode == 0, '%d mutants of %s recordings%s: read or refused, no crash, no hang' %
       (n * share, kind, ', and children that lie' if exe == liar else ''),
       r.stderr.decode(errors='replace')[-2000:])
done()

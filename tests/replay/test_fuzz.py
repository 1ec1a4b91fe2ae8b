# SPDX-License-Identifier: BSD-2-Clause
"""A short run of fuzz_recording over seeds of every format: test_fuzz.py FUZZ_RECORDING [ITERATIONS]"""
import os
import shutil
import subprocess
import sys
import tempfile

from tap import done, ok

fuzz, n = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 400
here = os.path.dirname(os.path.abspath(__file__))
corpus = tempfile.mkdtemp(prefix='inlay-corpus-')
subprocess.run([sys.executable, os.path.join(here, 'make_corpus.py'), corpus], check=True)
for kind, share in (('text', 5), ('perf', 2), ('dat', 1)):
    r = subprocess.run([fuzz, '--iterations', str(n * share), '-q', '--timeout', '60', os.path.join(corpus, kind)],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    ok(r.returncode == 0, '%d mutants of %s recordings: read or refused, no crash, no hang' % (n * share, kind),
       r.stderr.decode(errors='replace')[-2000:])
shutil.rmtree(corpus)
done()

# SPDX-License-Identifier: BSD-2-Clause
"""inlay conformance-plugin: bare instructions as hex in, r0 as hex out; what cannot run says why."""
import struct
import subprocess
import time

from tapcli import INLAY, done, equal, inlay, ok

EXIT = (0x95,)
ENGINES = ((), ('--interp',))


def hexed(*insns):
    """Each: opcode, dst, src, off, imm; what is left out is 0."""
    out = b''
    for insn in insns:
        code, dst, src, off, imm = insn + (0,) * (5 - len(insn))
        out += struct.pack('<BBhi', code, src << 4 | dst, off, imm)
    return out.hex()


def plugin(text, *args, engine=()):
    return inlay(*engine, 'conformance-plugin', *args, input=text.encode())


def both(program, want, name, *args):
    """The same answer, and nothing else, from the compiler and the interpreter."""
    for engine in ENGINES:
        p = plugin(program, *args, engine=engine)
        ok(p.rc == 0 and p.out == want + '\n' and not p.err, f'{name}{", interpreted" if engine else ""}',
           p.rc, p.out, p.err)


def fails(text, said, name, *args):
    for engine in ENGINES:
        p = plugin(text, *args, engine=engine)
        ok(p.rc == 1 and not p.out and said in p.err and p.err.count('\n') == 1,
           f'{name}{", interpreted" if engine else ""}', p.rc, p.out, p.err)


both(hexed((0xb7, 0, 0, 0, 42), EXIT), '2a', 'prints r0 in hex')
both(hexed((0xb7, 0, 0, 0, -2), EXIT), 'fffffffffffffffe', 'prints all 64 bits of r0')
both(hexed((0xb4, 0, 0, 0, -1), EXIT), 'ffffffff', 'a 32-bit move leaves the upper half zero')
both(hexed((0x18, 0, 0, 0, 0x55667788), (0, 0, 0, 0, 0x11223344), EXIT), '1122334455667788', 'a constant of 64 bits')
text = hexed((0xb7, 0, 0, 0, 7), EXIT)
both('\n'.join(text[i:i + 2].upper() for i in range(0, len(text), 2)) + '\n', '7', 'bytes may stand apart, digits be large')

both(hexed((0x71, 0, 1, 2), EXIT), 'ff', 'r1 points to the memory', '01 02 ff')
both(hexed((0xbf, 0, 2), EXIT), '3', 'r2 is its length', '0102ff')
both(hexed((0xbf, 0, 1), (0x4f, 0, 2), EXIT), '0', 'without memory r1 is NULL and r2 is 0')
both(hexed((0x72, 1, 0, 1, 9), (0x69, 0, 1, 0), EXIT), '901', 'memory can be written', '0102')
both(hexed((0x7b, 10, 2, -8), (0x79, 0, 10, -8), EXIT), '2', 'there is a stack', 'aabb')

both(hexed((0xb7, 1, 0, 0, 20), (0x85, 0, 1, 0, 1), EXIT, (0xbf, 0, 1), (0x07, 0, 0, 0, 22), EXIT), '2a',
     'local functions can be called')
both(hexed((0xb7, 6, 0, 0, 1), (0x85, 0, 1, 0, 2), (0x0f, 0, 6), EXIT, (0xb7, 6, 0, 0, 50), (0xbf, 0, 6), EXIT), '33',
     'a local function keeps its caller\'s r6')

fails(hexed((0x85, 0, 0, 0, 5), EXIT), 'insn 0: calls helper 5', 'calls of helpers are refused')
fails(hexed((0xb7,), (0x85, 0, 2, 0, 5), EXIT), 'insn 1: calls kernel function 5', 'calls of kernel functions are refused')
fails(hexed((0x18, 1, 1, 0, 3), (0,), (0xb7,), EXIT), 'insn 0: loads a map', 'loads of maps are refused')
fails(hexed((0xb7,), (0xb7,)), 'insn 1: last insn is not an exit or jmp', 'a program without an end is refused')
fails(hexed((0x05, 0, 0, 7), EXIT), 'insn 0:', 'a jump out of the program is refused')
fails(hexed((0xb7,), (0x8f,), EXIT), 'insn 1:', 'an unknown instruction is refused, counted from 0')
fails(hexed((0x79, 0, 1, 8), EXIT), 'memory that is not its own', 'a load through a pointer to nothing is said')

fails('b7zz', 'program: no hex bytes at offset 2', 'what is no hex is said, and where')
fails('b70', 'program: no hex bytes at offset 2', 'half a byte is refused')
fails('b700', '2 bytes on standard input are no whole instructions', 'half an instruction is refused')
fails('', '0 bytes on standard input', 'no program is refused')
fails(text, 'memory: no hex bytes at offset 3', 'memory that is no hex is refused', '01 x')
p = plugin(text, '00', '00')
ok(p.rc == 2 and not p.out and p.err, 'a second argument is misuse', p.rc, p.err)

# both engines at once: each takes all of its budget
start = time.monotonic()
runs = [subprocess.Popen([INLAY, *e, 'conformance-plugin'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE) for e in ENGINES]
for r in runs:
    r.stdin.write(hexed((0x05, 0, 0, -1), EXIT).encode())
    r.stdin.close()
for r, engine in zip(runs, ENGINES):
    try:
        r.wait(60)
    except subprocess.TimeoutExpired:
        r.kill()
        r.wait()
    err = r.stderr.read().decode()
    took = time.monotonic() - start
    ok(r.returncode == 1 and 'did not end in its budget of 10 seconds' in err and 9 < took < 60,
       f'an endless loop is ended when its budget is spent{", interpreted" if engine else ""}', r.returncode, took, err)
done()

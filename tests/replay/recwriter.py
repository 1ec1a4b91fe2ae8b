# SPDX-License-Identifier: BSD-2-Clause
"""Writers of small recordings in every format inlay reads, from one list of events.

An event is a dict: ts (ns), cpu, tgid, tid (of the current thread), kind, and the kind's own keys. `dump()` gives the
line rec_dump prints for it. Nothing here shares code with the readers.
"""
import ctypes
import struct
import zlib

KINDS = ['sched_switch', 'sched_wakeup', 'sched_wakeup_new', 'sched_waking', 'sched_process_fork',
         'sched_process_exit', 'sched_migrate_task']

# ---- states -----------------------------------------------------------------------------------------------------

# era: letters of bits 0, 1, 2 …; the bit after the last is "+" ('' for none)
ERAS = {
    '6.18': 'SDTtXZPI',
    '4.8': 'SDTtXZxKWPNn',
    '4.2': 'SDTtXZxKWPN',
    '3.9': 'SDTtZXxKWP',
    '2.6.33': 'SDTtZXxKW',
}
NORM = {'R': 0, 'S': 1, 'D': 2, 'T': 4, 't': 8, 'X': 0x10, 'Z': 0x20, 'P': 0x40, 'x': 0x80, 'I': 0x402, 'K': 0x100,
        'W': 0x200, 'N': 0x400, 'n': 0x800}


def state_bits(era, letters):
    """Raw prev_state of "S", "D|K", "R+" in that kernel."""
    table, plus = ERAS[era], letters.endswith('+')
    raw = 1 << len(table) if plus else 0
    for c in letters.rstrip('+').split('|'):
        if c != 'R':
            raw |= 1 << table.index(c)
    return raw


def state_norm(letters):
    out = 0
    if letters.endswith('+'):
        return '0x0+'
    for c in letters.split('|'):
        out |= NORM[c]
    return hex(out)


def switch_print_fmt(era, style):
    table = ERAS[era]
    flags = ', '.join('{ %s, "%s" }' % (hex(1 << i) if style != 'decimal' else 1 << i, c)
                      for i, c in enumerate(table))
    plus = 1 << len(table)
    if style == 'decimal':
        mask, plusx = '(%d-1)' % plus, str(plus)
    else:
        ors = ' | '.join('0x%04x' % (1 << i) for i in range(len(table) - 1))
        mask = '((((0x0000 | %s) + 1) << 1) - 1)' % ors
        plusx = '(((0x0000 | %s) + 1) << 1)' % ors
    return ('"prev_comm=%%s prev_pid=%%d prev_prio=%%d prev_state=%%s%%s ==> next_comm=%%s next_pid=%%d '
            'next_prio=%%d", REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & %s) ? '
            '__print_flags(REC->prev_state & %s, "|", %s) : "R", REC->prev_state & %s ? "+" : "", '
            'REC->next_comm, REC->next_pid, REC->next_prio' % (mask, mask, flags, plusx))


# ---- binary tracepoint records ----------------------------------------------------------------------------------

class Layout:
    """Field layout of the tracepoints, and the format files that describe it."""

    def __init__(self, long_size=8, big=False, era='6.18', style='hex', moved=False, data_loc=False, success=False,
                 rename=None, states=True, rel_loc=False):
        self.end = '>' if big else '<'
        self.big, self.long_size, self.era, self.style = big, long_size, era, style
        self.moved, self.data_loc, self.success, self.rename = moved, data_loc, success, rename or {}
        self.states, self.rel_loc = states, rel_loc
        self.ids = {k: 300 + i for i, k in enumerate(KINDS)}
        self.ids['sys_enter'] = 20

    def fields(self, kind):
        comm = 'loc' if self.data_loc else 'comm'
        f = {
            'sched_switch': [('comm', 'prev_comm'), ('int', 'prev_pid'), ('int', 'prev_prio'), ('long', 'prev_state'),
                             ('comm', 'next_comm'), ('int', 'next_pid'), ('int', 'next_prio')],
            'sched_process_fork': [(comm, 'parent_comm'), ('int', 'parent_pid'), (comm, 'child_comm'),
                                   ('int', 'child_pid')],
            'sched_process_exit': [('comm', 'comm'), ('int', 'pid'), ('int', 'prio')] +
                                  ([('u8', 'group_dead')] if self.data_loc else []),
            'sched_migrate_task': [(comm, 'comm'), ('int', 'pid'), ('int', 'prio'), ('int', 'orig_cpu'),
                                   ('int', 'dest_cpu')],
            'sys_enter': [('long', 'id')],
        }.get(kind) or ([('comm', 'comm'), ('int', 'pid'), ('int', 'prio')] +
                        ([('int', 'success')] if self.success else []) + [('int', 'target_cpu')])
        if self.moved:  # another order, and a stranger between
            f = [('long', 'stranger')] + f[::-1]
        return f

    SIZES = {'comm': 16, 'int': 4, 'u8': 1, 'loc': 4}

    def place(self, kind):
        off, out = 8, []
        for t, name in self.fields(kind):
            size = self.long_size if t == 'long' else self.SIZES[t]
            align = 1 if t == 'comm' else size
            off = (off + align - 1) // align * align
            out.append((t, name, off, size))
            off += size
        return out, (off + 3) // 4 * 4

    def format(self, kind):
        ctype = {'comm': ('char %s[16]', 0), 'int': ('int %s', 1), 'u8': ('bool %s', 0), 'long': ('long %s', 1),
                 'loc': ('__rel_loc char[] %s' if self.rel_loc else '__data_loc char[] %s', 0)}
        s = 'name: %s\nID: %d\nformat:\n' % (kind, self.ids[kind])
        for t, n, o, z, g in (('unsigned short', 'common_type', 0, 2, 0), ('unsigned char', 'common_flags', 2, 1, 0),
                              ('unsigned char', 'common_preempt_count', 3, 1, 0), ('int', 'common_pid', 4, 4, 1)):
            s += '\tfield:%s %s;\toffset:%d;\tsize:%d;\tsigned:%d;\n' % (t, n, o, z, g)
        s += '\n'
        for t, name, off, size in self.place(kind)[0]:
            decl, signed = ctype[t]
            s += '\tfield:%s;\toffset:%d;\tsize:%d;\tsigned:%d;\n' % (decl % self.rename.get(name, name), off, size,
                                                                   signed)
        s += '\nprint fmt: '
        if kind == 'sched_switch' and self.states:
            s += switch_print_fmt(self.era, self.style)
        else:
            s += self.print_fmt(kind)
        return s + '\n'

    def print_fmt(self, kind):
        if kind == 'sys_enter':
            return '"NR %ld", REC->id'
        if kind == 'sched_switch':  # without the letters
            return '"prev_pid=%d", REC->prev_pid'
        args = {
            'sched_process_fork': [('comm', 'parent_comm', 's'), ('pid', 'parent_pid', 'd'), ('child_comm',) * 2 + ('s',),
                                   ('child_pid',) * 2 + ('d',)],
            'sched_migrate_task': [(n, n, 's' if n == 'comm' else 'd')
                                   for n in ('comm', 'pid', 'prio', 'orig_cpu', 'dest_cpu')],
            'sched_process_exit': [('comm', 'comm', 's'), ('pid', 'pid', 'd'), ('prio', 'prio', 'd')],
        }.get(kind, [('comm', 'comm', 's'), ('pid', 'pid', 'd'), ('prio', 'prio', 'd'),
                     ('target_cpu', 'target_cpu', '03d')])
        loc = [n for t, n in self.fields(kind) if t == 'loc']
        return '"%s", %s' % (' '.join('%s=%%%s' % (k, f) for k, _, f in args),
                             ', '.join('__get_str(%s)' % n if n in loc else 'REC->' + n for _, n, _ in args))

    def record(self, ev):
        kind = ev['kind'] if ev['kind'] in self.ids else 'sys_enter'
        fields, size = self.place(kind)
        out = bytearray(size)
        struct.pack_into(self.end + 'HBBi', out, 0, self.ids[kind], 0, 0, ev['tid'])
        vals = self.values(ev, kind)
        for t, name, off, z in fields:
            v = vals.get(name, 0)
            if t == 'comm':
                out[off:off + 16] = v.encode()[:15].ljust(16, b'\0')
            elif t == 'loc':
                b = v.encode() + b'\0'
                where = len(out) - (off + 4) if self.rel_loc else len(out)
                struct.pack_into(self.end + 'I', out, off, where | len(b) << 16)
                out += b
            else:
                code = {1: 'B', 4: 'i', 8: 'q'}[z]
                struct.pack_into(self.end + code, out, off, v)
        return bytes(out) + b'\0' * (-len(out) % 4)

    def values(self, ev, kind):
        v = dict(ev)
        if kind == 'sched_switch':
            v['prev_state'] = state_bits(self.era, ev['prev_state'])
        v.setdefault('success', 1)
        return v


def container(layout, kinds, version, page=4096, extra_header=True):
    """header_page … saved command lines, as trace.dat v6 and perf's TRACING_DATA have them."""
    e, ls = layout.end, layout.long_size
    hp = ('\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n'
          '\tfield: local_t commit;\toffset:8;\tsize:%d;\tsigned:1;\n'
          '\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n'
          '\tfield: char data;\toffset:%d;\tsize:%d;\tsigned:0;\n' % (ls, 8 + ls, page - 8 - ls)).encode()
    he = (b'# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n'
          b'\tarray       :   32 bits\n\n\tpadding     : type == 29\n\ttime_extend : type == 30\n'
          b'\ttime_stamp : type == 31\n\tdata max type_len  == 28\n')
    head = b'\x17\x08\x44tracing' + version + b'\0' + bytes([layout.big, ls]) + struct.pack(e + 'I', page)
    headers = b'header_page\0' + struct.pack(e + 'Q', len(hp)) + hp
    headers += b'header_event\0' + struct.pack(e + 'Q', len(he)) + he
    ftrace = struct.pack(e + 'I', 0)
    systems = {'sched': [k for k in kinds if k.startswith('sched')], 'raw_syscalls': ['sys_enter']}
    events = struct.pack(e + 'I', len(systems))
    for name, ks in systems.items():
        events += name.encode() + b'\0' + struct.pack(e + 'I', len(ks))
        for k in ks:
            f = layout.format(k).encode()
            events += struct.pack(e + 'Q', len(f)) + f
    rest = struct.pack(e + 'I', 0) + struct.pack(e + 'I', 0) + struct.pack(e + 'Q', 0)
    return head, headers, ftrace, events, rest


# ---- trace.dat --------------------------------------------------------------------------------------------------

def ring_pages(layout, events, page=4096, missed=None):
    """One CPU's events as ring buffer pages. missed: {index of event: count, or 0 for unknown} starts a new page."""
    e, ls = layout.end, layout.long_size
    missed = missed or {}
    pages, body, base, last, lost = [], b'', None, 0, None

    def header(type_len, delta):
        return struct.pack(e + 'I', type_len << 27 | delta if layout.big else type_len | delta << 5)

    def flush():
        nonlocal body, base, lost
        if base is None:
            return
        commit, data = len(body), body
        if lost is not None:
            commit |= 1 << 31
            if lost:
                commit |= 1 << 30
                data += struct.pack(e + ('Q' if ls == 8 else 'I'), lost)
        pages.append((struct.pack(e + 'Q', base) + struct.pack(e + ('Q' if ls == 8 else 'I'), commit) +
                      data).ljust(page, b'\0'))
        body, base, lost = b'', None, None

    for i, ev in enumerate(events):
        rec = layout.record(ev)
        need = 16 + 8 + len(rec)
        if base is not None and (i in missed or 8 + ls + len(body) + need + 8 > page):
            flush()
        if base is None:
            base = last = ev['ts']
            lost = missed.get(i)
        delta = ev['ts'] - last
        last = ev['ts']
        if delta >= 1 << 27:
            body += header(30, delta & ((1 << 27) - 1)) + struct.pack(e + 'I', delta >> 27)
            delta = 0
        if len(rec) // 4 <= 28:
            body += header(len(rec) // 4, delta) + rec
        else:
            body += header(0, delta) + struct.pack(e + 'I', len(rec) + 4) + rec
    flush()
    return b''.join(pages)


class Zstd:
    def __init__(self):
        self.lib = ctypes.CDLL('libzstd.so.1')
        self.lib.ZSTD_compressBound.restype = self.lib.ZSTD_compress.restype = ctypes.c_size_t
        self.lib.ZSTD_createCStream.restype = ctypes.c_void_p
        self.lib.ZSTD_compressStream2.restype = ctypes.c_size_t

    def compress(self, data):
        n = self.lib.ZSTD_compressBound(ctypes.c_size_t(len(data)))
        buf = ctypes.create_string_buffer(n)
        got = self.lib.ZSTD_compress(buf, ctypes.c_size_t(n), data, ctypes.c_size_t(len(data)), 3)
        return buf.raw[:got]

    class Buf(ctypes.Structure):
        _fields_ = [('p', ctypes.c_void_p), ('size', ctypes.c_size_t), ('pos', ctypes.c_size_t)]

    def stream(self):
        """A function that compresses and flushes into one continuing stream, as perf record -z does."""
        z = ctypes.c_void_p(self.lib.ZSTD_createCStream())

        def feed(data):
            out, res = ctypes.create_string_buffer(len(data) + 1024), b''
            src = ctypes.create_string_buffer(data, len(data))
            i = self.Buf(ctypes.cast(src, ctypes.c_void_p), len(data), 0)
            while True:
                o = self.Buf(ctypes.cast(out, ctypes.c_void_p), len(out), 0)
                left = self.lib.ZSTD_compressStream2(z, ctypes.byref(o), ctypes.byref(i), 1)
                res += out.raw[:o.pos]
                if not left and i.pos == i.size:
                    return res
        return feed


def trace_dat(events, layout, version=6, compress=None, cpus=None, missed=None, page=4096, instance_only=False,
              clock='[local] global counter'):
    """missed: {cpu: {index: count}}."""
    e = layout.end
    kinds = KINDS
    nr = cpus or max([ev['cpu'] for ev in events], default=0) + 1
    per_cpu = {c: [ev for ev in events if ev['cpu'] == c] for c in range(nr)}
    data = {c: ring_pages(layout, per_cpu[c], page, (missed or {}).get(c)) for c in range(nr)}
    head, headers, ftrace, evs, rest = container(layout, kinds, str(version).encode(), page)
    if version == 6:
        out = head + headers + ftrace + evs + rest + struct.pack(e + 'I', nr)
        c = clock.encode() + b'\0'
        out += b'options  \0' + struct.pack(e + 'HI', 4, len(c)) + c
        un = b'Linux box 5.10\0'
        out += struct.pack(e + 'HI', 5, len(un)) + un + struct.pack(e + 'H', 0)
        out += b'flyrecord\0'
        off = (len(out) + 16 * nr + page - 1) // page * page
        table, body = b'', b''
        for c in range(nr):
            table += struct.pack(e + 'QQ', off + len(body), len(data[c]))
            body += data[c]
        return (out + table).ljust(off, b'\0') + body
    # v7
    z = Zstd() if compress else None
    out = bytearray(head + (b'zstd\0001.5\0' if compress else b'none\0\0'))
    out += struct.pack(e + 'Q', 0)
    opt_at = len(out) - 8
    opts = b''

    def section(sid, body, squeeze=True):
        nonlocal out
        at, flags = len(out), 0
        if compress and squeeze:
            zb = z.compress(body)
            body, flags = struct.pack(e + 'II', len(zb), len(body)) + zb, 1
        out += struct.pack(e + 'HHIQ', sid, flags, 0, len(body)) + body
        return at

    for sid, body in ((16, headers), (17, ftrace), (18, evs)):
        opts += struct.pack(e + 'HIQ', sid, 8, section(sid, body))
    used = [c for c in range(nr) if data[c]]
    at = len(out)
    out += struct.pack(e + 'HHIQ', 3, 1 if compress else 0, 0, 0)
    out += b'\0' * (-len(out) % page)
    buf = b''
    for c in used:
        blob = data[c]
        if compress:
            chunks = [blob[i:i + 4 * page] for i in range(0, len(blob), 4 * page)]
            zs = [z.compress(ch) for ch in chunks]
            blob = struct.pack(e + 'I', len(chunks)) + b''.join(
                struct.pack(e + 'II', len(zc), len(ch)) + zc for zc, ch in zip(zs, chunks))
        buf += struct.pack(e + 'IQQ', c, len(out), len(blob))
        out += blob
        out += b'\0' * (-len(out) % page)
    struct.pack_into(e + 'Q', out, at + 8, len(out) - at - 16)
    name = b'inst\0' if instance_only else b'\0'
    bopt = struct.pack(e + 'Q', at) + name + clock.encode() + b'\0' + struct.pack(e + 'II', page, len(used)) + buf
    opts += struct.pack(e + 'HI', 3, len(bopt)) + bopt
    if instance_only:  # and an empty top buffer
        top = struct.pack(e + 'Q', at) + b'\0' + clock.encode() + b'\0' + struct.pack(e + 'II', page, nr)
        top += b''.join(struct.pack(e + 'IQQ', c, 0, 0) for c in range(nr))
        opts += struct.pack(e + 'HI', 3, len(top)) + top
    opts += struct.pack(e + 'HIQ', 0, 8, 0)
    struct.pack_into(e + 'Q', out, opt_at, section(0, opts, squeeze=False))
    return bytes(out)


# ---- perf.data --------------------------------------------------------------------------------------------------

IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD, STREAM_ID, RAW = (1 << i for i in range(11))
BRANCH_STACK, REGS_USER, STACK_USER, WEIGHT, DATA_SRC, IDENTIFIER, TRANSACTION, REGS_INTR = (1 << i for i in range(11, 19))
PHYS_ADDR, AUX, CGROUP = 1 << 19, 1 << 20, 1 << 21
DEFAULT = IP | TID | TIME | CPU | PERIOD | RAW | IDENTIFIER


def attr_bytes(typ, config, sample_type, read_format=0, size=128):
    flags = 1 << 18  # sample_id_all
    a = struct.pack('<IIQQQQQ', typ, size, config, 1, sample_type, read_format, flags)
    a += struct.pack('<II', 0, 0) + b'\0' * 16
    a += struct.pack('<QQ', 0x8 if sample_type & BRANCH_STACK else 0, 0x7)  # branch_sample_type, sample_regs_user
    a += struct.pack('<Ii', 0, 0) + struct.pack('<Q', 0x3)  # stack_user, clockid, sample_regs_intr
    return a.ljust(size, b'\0')[:size]


def sample(ev, layout, st, sid, rf=0, cgroup=0):
    b = b''
    if st & IDENTIFIER:
        b += struct.pack('<Q', sid)
    if st & IP:
        b += struct.pack('<Q', 0xffffffff81000000)
    if st & TID:
        b += struct.pack('<ii', ev['tgid'], ev['tid'])
    if st & TIME:
        b += struct.pack('<Q', ev['ts'])
    if st & ADDR:
        b += struct.pack('<Q', 1)
    if st & ID:
        b += struct.pack('<Q', sid)
    if st & STREAM_ID:
        b += struct.pack('<Q', sid + 5)
    if st & CPU:
        b += struct.pack('<II', ev['cpu'], 0)
    if st & PERIOD:
        b += struct.pack('<Q', 1)
    if st & READ:
        if rf & 8:  # GROUP: nr, enabled, running, then {value, id, lost} each
            b += struct.pack('<Q', 2) + b'\0' * 8 * (bool(rf & 1) + bool(rf & 2))
            b += b'\0' * 8 * 2 * (1 + bool(rf & 4) + bool(rf & 16))
        else:
            b += b'\0' * 8 * (1 + bool(rf & 1) + bool(rf & 2) + bool(rf & 4) + bool(rf & 16))
    if st & CALLCHAIN:
        n = ev['ts'] % 5
        b += struct.pack('<Q', n) + b'\x11' * 8 * n
    if st & RAW:
        raw = layout.record(ev)
        pad = -(len(raw) + 4) % 8
        b += struct.pack('<I', len(raw) + pad) + raw + b'\0' * pad
    if st & BRANCH_STACK:
        n = ev['ts'] % 3
        b += struct.pack('<Q', n) + b'\x22' * 24 * n
    if st & REGS_USER:
        b += struct.pack('<Q', 2) + b'\x33' * 24 if ev['ts'] % 2 else struct.pack('<Q', 0)
    if st & STACK_USER:
        b += struct.pack('<Q', 16) + b'\x44' * 16 + struct.pack('<Q', 8) if ev['ts'] % 2 else struct.pack('<Q', 0)
    for bit in (WEIGHT, DATA_SRC, TRANSACTION):
        if st & bit:
            b += struct.pack('<Q', 7)
    if st & REGS_INTR:
        b += struct.pack('<Q', 2) + b'\x55' * 16
    if st & PHYS_ADDR:
        b += struct.pack('<Q', 9)
    if st & CGROUP:
        b += struct.pack('<Q', cgroup)
    return record(9, b)


def record(typ, body, misc=1):
    return struct.pack('<IHH', typ, misc, 8 + len(body)) + body


def sample_id(st, ts, cpu, tgid, tid, sid):
    b = b''
    if st & TID:
        b += struct.pack('<ii', tgid, tid)
    if st & TIME:
        b += struct.pack('<Q', ts)
    if st & ID:
        b += struct.pack('<Q', sid)
    if st & STREAM_ID:
        b += struct.pack('<Q', sid)
    if st & CPU:
        b += struct.pack('<II', cpu, 0)
    if st & IDENTIFIER:
        b += struct.pack('<Q', sid)
    return b


def pad8(s):
    b = s.encode() + b'\0'
    return b + b'\0' * (-len(b) % 8)


def side_record(ev, st, sid):
    """task and lost events."""
    tail = sample_id(st, ev.get('at', ev['ts']), ev['cpu'], ev['tgid'], ev['tid'], sid)
    if ev['kind'] == 'lost':
        return record(2, struct.pack('<QQ', sid, ev['count']) + tail)
    if ev.get('born'):
        return record(7, struct.pack('<iiiiQ', ev['task_tgid'], 1, ev['task_tid'], 1, ev['ts']) + tail)
    return record(3, struct.pack('<ii', ev['task_tgid'], ev['task_tid']) + pad8(ev['comm']) + tail)


def perf_data(events, layout, st=DEFAULT, rf=0, pipe=False, compress=False, chunk=7, rounds=True, dummy=True,
              tracing=True, cgroups=None, extra=b'', shuffle=True, attr_size=128, cut_header=False):
    """Events go in as per-CPU chunks, as perf copies its buffers, so that they are out of order in the file."""
    sid = {k: 100 + i for i, k in enumerate(KINDS + ['sys_enter'])}
    dummy_st = (st & ~(PERIOD | RAW)) | (0 if st & (IDENTIFIER | ID) else 0)
    attrs = [(attr_bytes(2, layout.ids[k], st, rf, attr_size), [sid[k]]) for k in KINDS + ['sys_enter']]
    if dummy:
        attrs.append((attr_bytes(1, 9, dummy_st, 0, attr_size), [999]))
    tr = b''.join(container(layout, KINDS, b'0.6')) if tracing else b''
    recs = []
    for ev in events:
        if ev['kind'] in ('task', 'lost'):
            recs.append((ev['cpu'], side_record(ev, st if not dummy else dummy_st, 999 if dummy else 0)))
        else:
            k = ev['kind'] if ev['kind'] in sid else 'sys_enter'
            recs.append((ev['cpu'], sample(ev, layout, st, sid[k], rf, ev.get('cgroup', 0))))
    body = b''
    for cid, path in (cgroups or {}).items():
        body += record(19, struct.pack('<Q', cid) + pad8(path) + sample_id(st, 0, 0, 0, 0, 999 if dummy else 0))
    stream = Zstd().stream() if compress else None

    def put(blob):
        nonlocal body
        if not compress:
            body += blob
            return
        while blob:  # records may be split between two COMPRESSED ones
            part, blob = blob[:997], blob[997:]
            body += record(81, stream(part))

    if shuffle:
        step = chunk * 4
        for i in range(0, len(recs), step):
            part = recs[i:i + step]
            for c in sorted({c for c, _ in part}, reverse=True):
                put(b''.join(r for cc, r in part if cc == c))
            if rounds:
                body += record(68, b'')
    else:
        put(b''.join(r for _, r in recs))
    body += extra
    if pipe:
        out = b'PERFILE2' + struct.pack('<Q', 16)
        for a, ids in attrs:
            out += record(64, a + b''.join(struct.pack('<Q', i) for i in ids))
        out += record(80, struct.pack('<Q', 3) + struct.pack('<I', 8) + b'pipebox\0')
        if tracing:
            t = tr + b'\0' * (-len(tr) % 8)
            out += record(66, struct.pack('<I', len(tr)) + b'') + t if False else \
                struct.pack('<IHHI', 66, 0, 12, len(tr)) + t
        return out + body
    ids_at = 104
    ids = b''.join(struct.pack('<Q', i) for _, l in attrs for i in l)
    attrs_at = ids_at + len(ids)
    table = b''
    for a, l in attrs:
        table += a + struct.pack('<QQ', ids_at, 8 * len(l))
        ids_at += 8 * len(l)
    data_at = attrs_at + len(table)
    feats = []
    if tracing:
        feats.append((1, tr))
    feats.append((3, struct.pack('<I', 8) + b'filebox\0'))
    bits = bytearray(32)
    for f, _ in feats:
        bits[f // 8] |= 1 << f % 8
    head = b'PERFILE2' + struct.pack('<QQ', 104, attr_size + 16) + struct.pack('<QQ', attrs_at, len(table))
    head += struct.pack('<QQ', data_at, 0 if cut_header else len(body)) + struct.pack('<QQ', 0, 0) + bytes(bits)
    sect, blob = b'', b''
    at = data_at + len(body) + 16 * len(feats)
    for _, b in feats:
        sect += struct.pack('<QQ', at + len(blob), len(b))
        blob += b
    return head + ids + table + body + sect + blob


# ---- text -------------------------------------------------------------------------------------------------------

def stamp(ns, digits):
    return '%d.%s' % (ns // 10**9, ('%09d' % (ns % 10**9))[:digits])


def fields_kernel(ev, era=None, success=False):
    """The kernel's print format; era: prev_state as a number of that kernel (trace-cmd's raw form)."""
    k = ev['kind']
    if k == 'sched_switch':
        st = str(state_bits(era, ev['prev_state'])) if era else ev['prev_state']
        arrow = '' if era else '==> '
        return ('prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s %snext_comm=%s next_pid=%d next_prio=%d' %
                (ev['prev_comm'], ev['prev_pid'], ev['prev_prio'], st, arrow, ev['next_comm'], ev['next_pid'],
                 ev['next_prio']))
    if k == 'sched_process_fork':
        return 'comm=%s pid=%d child_comm=%s child_pid=%d' % (ev['parent_comm'], ev['parent_pid'], ev['child_comm'],
                                                            ev['child_pid'])
    if k == 'sched_process_exit':
        gd = {-1: '', 0: ' group_dead=false', 1: ' group_dead=true'}[ev['group_dead']]
        return 'comm=%s pid=%d prio=%d%s' % (ev['comm'], ev['pid'], ev['prio'], gd)
    if k == 'sched_migrate_task':
        return 'comm=%s pid=%d prio=%d orig_cpu=%d dest_cpu=%d' % (ev['comm'], ev['pid'], ev['prio'], ev['orig_cpu'],
                                                                 ev['dest_cpu'])
    if k in KINDS:
        return 'comm=%s pid=%d prio=%d%s target_cpu=%03d' % (ev['comm'], ev['pid'], ev['prio'],
                                                            ' success=1' if success else '', ev['target_cpu'])
    return 'NR 1 (0, 0)'


def fields_plugin(ev):
    k = ev['kind']
    if k == 'sched_switch':
        return '%s:%d [%d] %s ==> %s:%d [%d]' % (ev['prev_comm'], ev['prev_pid'], ev['prev_prio'], ev['prev_state'],
                                                 ev['next_comm'], ev['next_pid'], ev['next_prio'])
    if k in ('sched_wakeup', 'sched_wakeup_new'):
        return '%s:%d [%d] success=1 CPU:%03d' % (ev['comm'], ev['pid'], ev['prio'], ev['target_cpu'])
    return fields_kernel(ev)


def text(events, style, digits=9, era=None, comm='task name'):
    """style: script, script-pid, script-bare, script-chain, ftrace, ftrace-tgid, ftrace-nofl, plugin, raw."""
    out = []
    if style.startswith('ftrace'):
        out += ['# tracer: nop', '#', '# entries-in-buffer/entries-written: 10/10   #P:4', '#',
                '#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION']
    if style in ('plugin', 'raw'):
        out += ['version = 6', 'CPU 3 is empty', 'cpus=4']
    for ev in events:
        if ev['kind'] in ('task', 'lost'):
            continue
        name = ev['kind'] if ev['kind'] in KINDS else 'sys_enter'
        t, cpu, tid, tgid = stamp(ev['ts'], digits), '[%03d]' % ev['cpu'], ev['tid'], ev['tgid']
        if style.startswith('script'):
            who = {'script-pid': '%16s %5d/%-5d' % (comm, tgid, tid), 'script-bare': ''}.get(
                style, '%16s %5d' % (comm, tid))
            per = '         1 ' if style == 'script-period' else ''
            out.append('%s %s %s: %s%s: %s' % (who, cpu, t, per, ('sched:' if name != 'sys_enter' else 'raw_syscalls:')
                                               + name, fields_kernel(ev)))
            if style == 'script-chain':
                out += ['\tffffffff810ee5a1 __schedule+0x2f1 (/lib/vmlinux [x])',
                        '\tffffffff810ee5a1 schedule+0x31 ([kernel.kallsyms])', '']
        elif style == 'ftrace-tgid':
            g = '(%7d)' % tgid if tgid >= 0 else '(-------)'
            out.append('%16s-%-7d %s %s d..2. %s: %s: %s' % (comm, tid, g, cpu, t, name, fields_kernel(ev)))
        elif style == 'ftrace':
            out.append('%16s-%-7d %s d.h2. %s: %s: %s' % (comm, tid, cpu, t, name, fields_kernel(ev)))
        elif style == 'ftrace-nofl':
            out.append('%16s-%-5d %s %s: %s: %s' % (comm, tid, cpu, t, name, fields_kernel(ev)))
        elif style == 'plugin':
            out.append('%16s-%-5d %s %s: %-22s%s' % (comm, tid, cpu, t, name + ':', fields_plugin(ev)))
        elif style == 'raw':
            out.append('%16s-%-5d %s %s: %-22s%s' % (comm, tid, cpu, t, name + ':', fields_kernel(ev, era, True)))
    return ('\n'.join(out) + '\n').encode()


# ---- what rec_dump prints ---------------------------------------------------------------------------------------

def dump(ev, tgid=True, tid=True, unit=1, group_dead=True, child_tgid=False):
    s = '%d cpu=%d cur=%d/%d ' % (ev['ts'] // unit * unit, ev['cpu'], ev['tgid'] if tgid else -1,
                                  ev['tid'] if tid else -1)
    k = ev['kind']
    if k == 'task':
        s = '%d cpu=%d cur=-1/-1 ' % (ev['ts'], ev['cpu'])
        return s + 'task [%s] %d %d %d' % ('' if ev.get('born') else ev['comm'], ev['task_tid'], ev['task_tgid'],
                                          bool(ev.get('born')))
    if k == 'lost':
        return '%d cpu=%d cur=-1/-1 lost %d %d' % (ev['ts'], ev['cpu'], ev['count'], ev['cpu'])
    s += k
    if k == 'sched_switch':
        s += ' [%s] %d %d %s [%s] %d %d' % (ev['prev_comm'], ev['prev_pid'], ev['prev_prio'],
                                            state_norm(ev['prev_state']), ev['next_comm'], ev['next_pid'],
                                            ev['next_prio'])
    elif k == 'sched_process_fork':
        s += ' [%s] %d [%s] %d %d' % (ev['parent_comm'], ev['parent_pid'], ev['child_comm'], ev['child_pid'],
                                      ev.get('child_tgid', -1) if child_tgid else -1)
    elif k == 'sched_process_exit':
        s += ' [%s] %d %d %d' % (ev['comm'], ev['pid'], ev['prio'], ev['group_dead'] if group_dead else -1)
    elif k == 'sched_migrate_task':
        s += ' [%s] %d %d %d %d' % (ev['comm'], ev['pid'], ev['prio'], ev['orig_cpu'], ev['dest_cpu'])
    else:
        s += ' [%s] %d %d %d' % (ev['comm'], ev['pid'], ev['prio'], ev['target_cpu'])
    if ev.get('cgroup_path'):
        s += ' cgroup=' + ev['cgroup_path']
    return s


COMMS = ['bash', 'kworker/u12:1', 'Web Content', 'k=v', 'a ==> b', '<...>', 'x prev_pid=1', 'fifteen-bytes-x', 'sh-1',
         'foo[1]', ':-1', 'é', '(sd-pam)', 'a  b']
STATES = ['R', 'R+', 'S', 'D', 'T', 't', 'X', 'Z', 'P', 'I']


def workload(n=400, cpus=4, seed=1, states=None, comms=None, step=1500, others=True):
    """A deterministic list of events with every kind in it."""
    x = seed * 2654435761 % 2**32
    states, comms = states or STATES, comms or COMMS

    def rnd(m):
        nonlocal x
        x = (x * 1103515245 + 12345) % 2**31
        return (x >> 8) % m

    evs, ts = [], 5_000_000_123
    for i in range(n):
        ts += 1 + rnd(step) * (200000 if i % 97 == 0 else 1)
        tid = rnd(40)
        ev = {'ts': ts, 'cpu': rnd(cpus), 'tid': tid, 'tgid': tid - tid % 4}
        k = rnd(20)
        a, b = 100 + rnd(30), 100 + rnd(30)
        ca, cb = comms[rnd(len(comms))], comms[rnd(len(comms))]
        if k < 8:
            ev.update(kind='sched_switch', prev_comm=ca, prev_pid=tid, prev_prio=120, prev_state=states[rnd(len(states))],
                      next_comm=cb, next_pid=b, next_prio=100 + rnd(39))
        elif k < 14:
            ev.update(kind=['sched_wakeup', 'sched_wakeup_new', 'sched_waking'][k % 3], comm=ca, pid=a, prio=120,
                      target_cpu=rnd(cpus), success=1)
        elif k < 15:
            ev.update(kind='sched_process_fork', parent_comm=ca, parent_pid=tid, child_comm=cb, child_pid=b)
        elif k < 16:
            ev.update(kind='sched_process_exit', comm=ca, pid=tid, prio=120, group_dead=rnd(2))
        elif k < 18:
            ev.update(kind='sched_migrate_task', comm=ca, pid=a, prio=120, orig_cpu=rnd(cpus), dest_cpu=rnd(cpus))
        elif others:
            ev.update(kind='other')
        else:
            continue
        evs.append(ev)
    return evs


def gz(data):
    c = zlib.compressobj(6, zlib.DEFLATED, 31)
    return c.compress(data) + c.flush()

# SPDX-License-Identifier: BSD-2-Clause
"""Objects with one fault each, made from a good one. faults(data) yields (name, bytes, regular expression)."""
import struct

EHDR = '<16sHHIQQQIHHHHHH'
SHDR = '<IIQQQQIIQQ'
SHDR_FIELDS = ['name', 'type', 'flags', 'addr', 'offset', 'size', 'link', 'info', 'addralign', 'entsize']
EHDR_AT = {'type': (16, 'H'), 'machine': (18, 'H'), 'version': (20, 'I'), 'shoff': (40, 'Q'), 'ehsize': (52, 'H'),
           'shentsize': (58, 'H'), 'shnum': (60, 'H'), 'shstrndx': (62, 'H')}
SHDR_AT = {'name': (0, 'I'), 'type': (4, 'I'), 'flags': (8, 'Q'), 'offset': (24, 'Q'), 'size': (32, 'Q'),
           'link': (40, 'I'), 'info': (44, 'I'), 'addralign': (48, 'Q'), 'entsize': (56, 'Q')}
BTF_AT = {'magic': (0, 'H'), 'version': (2, 'B'), 'flags': (3, 'B'), 'hdr_len': (4, 'I'), 'type_off': (8, 'I'),
          'type_len': (12, 'I'), 'str_off': (16, 'I'), 'str_len': (20, 'I')}
EXT_AT = {'magic': (0, 'H'), 'version': (2, 'B'), 'flags': (3, 'B'), 'hdr_len': (4, 'I'), 'func_off': (8, 'I'),
          'func_len': (12, 'I'), 'line_off': (16, 'I'), 'line_len': (20, 'I'), 'core_off': (24, 'I'),
          'core_len': (28, 'I')}
TAIL = {1: (4, 0), 3: (12, 0), 4: (0, 12), 5: (0, 12), 6: (0, 8), 13: (0, 8), 14: (4, 0), 15: (0, 12), 17: (4, 0),
        19: (0, 12)}


class Elf:
    def __init__(self, data):
        self.data = bytearray(data)
        self.shoff, = struct.unpack_from('<Q', data, 40)
        self.shnum, self.shstrndx = struct.unpack_from('<HH', data, 60)
        names = self.section(self.shstrndx)
        self.index = {}
        for i in range(self.shnum):
            at = names['offset'] + self.section(i)['name']
            self.index.setdefault(bytes(data[at:data.index(b'\0', at)]).decode(), i)

    def section(self, i):
        return dict(zip(SHDR_FIELDS, struct.unpack_from(SHDR, self.data, self.shoff + 64 * i)))

    def by_name(self, name):
        return self.section(self.index[name])

    def put(self, at, code, value):
        struct.pack_into('<' + code, self.data, at, value)

    def header(self, field, value):
        at, code = EHDR_AT[field]
        self.put(at, code, value)

    def shdr(self, name, field, value):
        at, code = SHDR_AT[field]
        i = name if isinstance(name, int) else self.index[name]
        self.put(self.shoff + 64 * i + at, code, value)

    def inside(self, name, off, code, value):
        self.put(self.by_name(name)['offset'] + off, code, value)

    def get(self, name, off, code):
        return struct.unpack_from('<' + code, self.data, self.by_name(name)['offset'] + off)[0]

    def symbol(self, name):
        sym, strs = self.by_name('.symtab'), self.by_name('.strtab')
        for i in range(sym['size'] // 24):
            at = strs['offset'] + struct.unpack_from('<I', self.data, sym['offset'] + 24 * i)[0]
            if self.data[at:self.data.index(b'\0', at)] == name.encode():
                return 24 * i
        raise KeyError(name)

    def types(self):
        """(id, offset in .BTF, kind, vlen) of each type."""
        at = self.get('.BTF', 4, 'I') + self.get('.BTF', 8, 'I')
        end = at + self.get('.BTF', 12, 'I')
        number = 1
        while at < end:
            info = self.get('.BTF', at + 4, 'I')
            kind, vlen = (info >> 24) & 31, info & 0xffff
            yield number, at, kind, vlen
            fixed, each = TAIL.get(kind, (0, 0))
            at += 12 + fixed + each * vlen
            number += 1

    def first(self, kind, nth=0):
        return [(i, at) for i, at, k, _ in self.types() if k == kind][nth]


def edits():
    """(name, function that changes an Elf, what the reason must say)"""
    code, rel = 'tp_btf/sched_switch', '.reltp_btf/sched_switch'

    def btf(field, value):
        return lambda e: e.inside('.BTF', BTF_AT[field][0], BTF_AT[field][1], value)

    def ext(field, value):
        return lambda e: e.inside('.BTF.ext', EXT_AT[field][0], EXT_AT[field][1], value)

    def sym(name, off, code_, value):
        return lambda e: e.inside('.symtab', e.symbol(name) + off, code_, value)

    def in_type(kind, off, code_, value):
        return lambda e: e.inside('.BTF', e.first(kind)[1] + off, code_, value)

    def in_ext(field, off, value):
        def edit(e):
            at = e.get('.BTF.ext', 4, 'I') + e.get('.BTF.ext', EXT_AT[field][0], 'I')
            e.inside('.BTF.ext', at + off, 'I', value)
        return edit

    def ring(kind, off):
        def edit(e):
            number, at = e.first(kind)
            e.inside('.BTF', at + off, 'I', number)
        return edit

    yield 'wrong magic', lambda e: e.put(0, 'B', 0x7e), r'not an ELF file'
    yield '32-bit class', lambda e: e.put(4, 'B', 1), r'class 1'
    yield 'big-endian', lambda e: e.put(5, 'B', 2), r'byte order 2'
    yield 'ident version', lambda e: e.put(6, 'B', 0), r'version 0'
    yield 'version', lambda e: e.header('version', 7), r'version 7'
    yield 'not BPF', lambda e: e.header('machine', 62), r'machine 62'
    yield 'an executable', lambda e: e.header('type', 2), r'type 2'
    yield 'header size', lambda e: e.header('ehsize', 52), r'size 52'
    yield 'no section headers', lambda e: e.header('shoff', 0), r'no section headers'
    yield 'section header size', lambda e: e.header('shentsize', 0), r'section header size 0'
    yield 'section headers behind the file', lambda e: e.header('shoff', 1 << 40), r'section headers at 0x10000000000'
    yield 'section headers whose end wraps', lambda e: e.header('shoff', (1 << 64) - 64), r'section headers at'
    yield 'too many sections', lambda e: e.header('shnum', 0xfeff), r'65279 sections do not fit'
    yield 'no sections', lambda e: e.header('shnum', 0), r'0 sections'
    yield 'section names nowhere', lambda e: e.header('shstrndx', 0xfff), r'section names in section 4095'
    yield 'section names in code', lambda e: e.header('shstrndx', e.index['.text']), r'no NUL-terminated string table'
    yield 'a section name outside', lambda e: e.shdr(code, 'name', 1 << 30), r'name at 0x40000000'
    yield 'a section behind the file', lambda e: e.shdr(code, 'offset', 1 << 50), r'section \d+: 0x\w+ bytes at'
    yield 'a section whose end wraps', lambda e: e.shdr(code, 'offset', (1 << 64) - 8), r'section \d+: 0x\w+ bytes at'
    yield 'a section longer than the file', lambda e: e.shdr(code, 'size', 1 << 24), r'the file ends at'
    yield 'a section of 2^62 bytes', lambda e: e.shdr('.bss', 'size', 1 << 62), r'more than a map or program'
    yield 'an alignment of 3', lambda e: e.shdr('.data', 'addralign', 3), r'alignment 0x3 is no power of two'
    yield 'a link to a section that is not there', lambda e: e.shdr('.symtab', 'link', 999), r'linked to section 999'
    yield 'code of 12 bytes', lambda e: e.shdr(code, 'size', 12), r'\(tp_btf/sched_switch\): size is not a number of'
    yield 'code without data', lambda e: e.shdr(code, 'type', 8), r'executable, but without instructions'
    yield 'compressed code', lambda e: e.shdr(code, 'flags', 0x806), r'compressed'
    yield 'no symbol table', lambda e: e.shdr('.symtab', 'type', 1), r'no symbol table'
    yield 'symbols of 0 bytes', lambda e: e.shdr('.symtab', 'entsize', 0), r'symbol size is not 24'
    yield 'half a symbol', lambda e: e.shdr('.symtab', 'size', 100), r'size is not a number of symbols'
    yield 'a second symbol table', lambda e: (e.shdr('.debug_str', 'type', 2), e.shdr('.debug_str', 'entsize', 24),
                                              e.shdr('.debug_str', 'size', 24),
                                              e.shdr('.debug_str', 'link', e.index['.strtab'])), r'second symbol table'
    yield 'symbol names in code', lambda e: e.shdr('.symtab', 'link', e.index[code]), r'not in a string table'
    yield 'symbol names without NUL', lambda e: e.shdr('.strtab', 'size', e.by_name('.strtab')['size'] - 1), \
        r'NUL-terminated'
    yield 'a symbol name outside', sym('on_switch', 0, 'I', 1 << 30), r'symbol \d+: name at 0x40000000'
    yield 'a symbol in a section that is not there', sym('on_switch', 6, 'H', 4000), r'\(on_switch\): in section 4000'
    yield 'a symbol in a reserved section', sym('on_switch', 6, 'H', 0xff05), r'\(on_switch\): in section 65285'
    yield 'a symbol whose end wraps', lambda e: (sym('on_switch', 8, 'Q', (1 << 64) - 16)(e),
                                                 sym('on_switch', 16, 'Q', 32)(e)), r'symbol \d+ \(on_switch\)'
    yield 'a symbol longer than its section', sym('on_switch', 16, 'Q', 1 << 20), r'\(on_switch\): 0x100000 bytes'
    yield 'a symbol behind its section', sym('counts', 8, 'Q', 64), r'symbol \d+ \(counts\)'
    yield 'a function inside an instruction', lambda e: (sym('on_switch', 8, 'Q', 4)(e),
                                                         sym('on_switch', 16, 'Q', 8)(e)), r'begin and end at an instr'
    yield 'a function of no instructions', sym('on_switch', 16, 'Q', 0), r'function without instructions'
    yield 'relocations of 0 bytes', lambda e: e.shdr(rel, 'entsize', 0), r'relocation size is not 16'
    yield 'half a relocation', lambda e: e.shdr(rel, 'size', 24), r'not a number of relocations'
    yield 'relocations with addends', lambda e: e.shdr(rel, 'type', 4), r'RELA'
    yield 'relocations of other symbols', lambda e: e.shdr(rel, 'link', e.index['.strtab']), \
        r'do not refer to the symbol table'
    yield 'relocations of no section', lambda e: e.shdr(rel, 'info', 0), r'relocates section 0'
    yield 'relocations of a section that is not there', lambda e: e.shdr(rel, 'info', 777), r'relocates section 777'
    yield 'relocations of .bss', lambda e: e.shdr(rel, 'info', e.index['.bss']), r'without data'
    yield 'a relocation behind its section', lambda e: e.inside(rel, 0, 'Q', 1 << 20), \
        r'relocation 0 of section \d+ \(.reltp_btf/sched_switch\): at offset 0x100000'
    yield 'a relocation of the last half', lambda e: e.inside(rel, 0, 'Q', e.by_name(code)['size'] - 8), \
        r'relocation 0 .* at offset'
    yield 'a relocation whose end wraps', lambda e: e.inside(rel, 0, 'Q', (1 << 64) - 8), r'relocation 0 .* at offset'
    yield 'a relocation inside an instruction', lambda e: e.inside(rel, 0, 'Q', 4), r'inside an instruction'
    yield 'a relocation of a symbol that is not there', lambda e: e.inside(rel, 12, 'I', 5000), r'symbol 5000 of'
    yield 'a relocation of type 99', lambda e: e.inside(rel, 8, 'I', 99), r'type 99 is none of BPF'
    yield 'a license without NUL', lambda e: e.shdr('license', 'size', 4), r'\(license\): .* NUL-terminated'
    yield 'an empty license', lambda e: e.shdr('license', 'size', 0), r'\(license\): holds no text'
    yield 'maps without definitions', lambda e: e.shdr('.maps', 'size', 0), r'\(.maps\): holds no map|symbol'
    yield 'maps without types', lambda e: e.shdr('.BTF', 'name', e.by_name('.text')['name']), r'need the types'
    for i in (0, 1, 7, 8, 23):
        yield f'.BTF of {i} bytes', lambda e, i=i: (e.shdr('.BTF', 'size', i), e.shdr('.rel.BTF', 'size', 0)), \
            r'section .BTF: '
    yield '.BTF without data', lambda e: (e.shdr('.BTF', 'type', 8), e.shdr('.rel.BTF', 'type', 1)), r'\.BTF: no data'
    yield '.BTF magic', btf('magic', 0x9feb), r'\.BTF: magic 0x9feb'
    yield '.BTF version', btf('version', 2), r'\.BTF: version 2'
    yield '.BTF flags', btf('flags', 1), r'\.BTF: flags 0x1'
    yield '.BTF header length 20', btf('hdr_len', 20), r'\.BTF: header length 20'
    yield '.BTF header longer than it', btf('hdr_len', 1 << 30), r'\.BTF: header length'
    yield '.BTF types that wrap', btf('type_off', 0xfffffff0), r'\.BTF: 0x\w+ bytes of types'
    yield '.BTF types unaligned', btf('type_off', 2), r'\.BTF: 0x\w+ bytes of types'
    yield '.BTF strings outside', btf('str_off', 0x7fffffff), r'\.BTF: 0x\w+ bytes of strings'
    yield '.BTF strings too long', btf('str_len', 0x7fffffff), r'\.BTF: 0x\w+ bytes of strings'
    yield '.BTF no strings', btf('str_len', 0), r'begin and end with NUL'
    yield '.BTF strings that do not end', lambda e: btf('str_len', e.get('.BTF', 20, 'I') - 1)(e), r'end with NUL'
    yield '.BTF no types', btf('type_len', 0), r'no types'
    yield '.BTF a type cut off', lambda e: btf('type_len', e.get('.BTF', 12, 'I') - 4)(e), r'is cut off'
    yield '.BTF kind 31', in_type(2, 4, 'I', 31 << 24), r'kind 31'
    yield '.BTF name outside', in_type(8, 0, 'I', 1 << 24), r'name at 0x1000000'
    yield '.BTF pointer to nowhere', in_type(2, 8, 'I', 9999), r'refers to type 9999'
    yield '.BTF member of a type that is not there', in_type(4, 16, 'I', 9999), r'refers to type 9999'
    yield '.BTF member name outside', in_type(4, 12, 'I', 1 << 24), r"entry's name"
    yield '.BTF array of nothing known', in_type(3, 12, 'I', 9999), r'refers to type 9999'
    yield '.BTF function of an int', lambda e: e.inside('.BTF', e.first(12)[1] + 8, 'I', e.first(1)[0]), \
        r'is no prototype'
    yield '.BTF section of types', lambda e: e.inside('.BTF', e.first(15)[1] + 12, 'I', e.first(1)[0]), \
        r'is no variable'
    yield '.BTF enumerator name outside', in_type(6, 12, 'I', 1 << 24), r"entry's name"
    yield '.BTF typedef of itself', ring(8, 8), r'is part of itself'
    yield '.BTF struct in itself', ring(4, 16), r'is part of itself'
    yield '.BTF array of itself', ring(3, 12), r'is part of itself'
    for i in (1, 8, 23):
        yield f'.BTF.ext of {i} bytes', lambda e, i=i: (e.shdr('.BTF.ext', 'size', i),
                                                        e.shdr('.rel.BTF.ext', 'size', 0)), r'section .BTF.ext: '
    yield '.BTF.ext magic', ext('magic', 1), r'ext: magic'
    yield '.BTF.ext version', ext('version', 9), r'ext: version 9'
    yield '.BTF.ext flags', ext('flags', 9), r'ext: flags'
    yield '.BTF.ext header length', ext('hdr_len', 12), r'ext: header length 12'
    yield '.BTF.ext header behind it', ext('hdr_len', 1 << 20), r'ext: header length'
    yield '.BTF.ext functions outside', ext('func_off', 1 << 20), r'func_info: 0x'
    yield '.BTF.ext functions whose end wraps', ext('func_len', 0xfffffff0), r'func_info: 0x'
    yield '.BTF.ext lines unaligned', ext('line_off', 2), r'line_info: 0x'
    yield '.BTF.ext relocations outside', ext('core_len', 0x7fffffff), r'core_relo: 0x'
    yield '.BTF.ext record size 0', in_ext('func_off', 0, 0), r'func_info: record size 0'
    yield '.BTF.ext record size 5', in_ext('line_off', 0, 5), r'line_info: record size 5'
    yield '.BTF.ext record size 2^31', in_ext('core_off', 0, 1 << 31), r'core_relo: record size'
    yield '.BTF.ext section name outside', in_ext('func_off', 4, 1 << 24), r'section name at'
    yield '.BTF.ext no records', in_ext('func_off', 8, 0), r'func_info: 0 records'
    yield '.BTF.ext too many records', in_ext('line_off', 8, 0x10000000), r'line_info: 268435456 records'
    yield '.BTF.ext section that is not there', in_ext('func_off', 4, 1), r'there is no section'
    yield '.BTF.ext function outside its section', in_ext('func_off', 12, 1 << 20), r'func_info 0: instruction offset'
    yield '.BTF.ext line inside an instruction', in_ext('line_off', 12, 3), r'line_info 0: instruction offset 0x3'
    yield '.BTF.ext function of an int', in_ext('func_off', 16, 1), r'is no function'
    yield '.BTF.ext line text outside', in_ext('line_off', 20, 1 << 24), r'line_info: file name or line'
    yield '.BTF.ext relocation of a type that is not there', in_ext('core_off', 16, 9999), r'core_relo: type 9999'
    yield '.BTF.ext access string outside', in_ext('core_off', 20, 1 << 24), r'core_relo: access string'


def faults(data):
    for size in (0, 1, 63):
        yield f'{size} bytes', bytes(data[:size]), r'not an ELF file'
    yield 'the first half', bytes(data[:len(data) // 2]), r'section headers at'
    for name, edit, reason in edits():
        elf = Elf(data)
        edit(elf)
        yield name, bytes(elf.data), reason

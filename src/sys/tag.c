// SPDX-License-Identifier: BSD-2-Clause
// A program's tag, as Linux 6.18 makes it: the first 8 bytes of SHA-256 (FIPS 180-4) over its
// instructions.
#include <stdlib.h>
#include <string.h>

#include "isa/uapi.h"
#include "sys/sys_int.h"

static const u32 sha_k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static u32 ror(u32 v, int n)
{
	return v >> n | v << (32 - n);
}

static void sha_block(u32 h[8], const u8 *p)
{
	u32 w[64], s[8], t1, t2;
	int i;

	for (i = 0; i < 16; i++)
		w[i] = (u32)p[4 * i] << 24 | p[4 * i + 1] << 16 | p[4 * i + 2] << 8 | p[4 * i + 3];
	for (; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (ror(w[i - 15], 7) ^ ror(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (ror(w[i - 2], 17) ^ ror(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(s, h, sizeof(s));
	for (i = 0; i < 64; i++) {
		t1 = s[7] + (ror(s[4], 6) ^ ror(s[4], 11) ^ ror(s[4], 25)) +
		     ((s[4] & s[5]) ^ (~s[4] & s[6])) + sha_k[i] + w[i];
		t2 = (ror(s[0], 2) ^ ror(s[0], 13) ^ ror(s[0], 22)) +
		     ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
		memmove(s + 1, s, 7 * sizeof(*s));
		s[4] += t1;
		s[0] = t1 + t2;
	}
	for (i = 0; i < 8; i++)
		h[i] += s[i];
}

struct sha {
	u32 h[8];
	u8 block[64];
	u64 len;
};

static void sha_add(struct sha *s, const void *data, size_t n)
{
	const u8 *p = data;

	for (; n; n--) {
		s->block[s->len++ % 64] = *p++;
		if (!(s->len % 64))
			sha_block(s->h, s->block);
	}
}

static void sha_end(struct sha *s)
{
	u64 bits = s->len * 8;
	u8 pad = 0x80, be[8];
	int i;

	sha_add(s, &pad, 1);
	for (pad = 0; s->len % 64 != 56;)
		sha_add(s, &pad, 1);
	for (i = 0; i < 8; i++)
		be[i] = bits >> (56 - 8 * i);
	sha_add(s, be, sizeof(be));
}

/* Map descriptors are numbers of one process: both halves of a load that names one are blanked. */
void sys_prog_tag(const void *insns, u32 nr_insns, u8 tag[8])
{
	struct sha s = {.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
			      0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
	const struct bpf_insn *from = insns;
	struct bpf_insn insn;
	bool second = false;
	u32 i;

	for (i = 0; i < nr_insns; i++) {
		insn = from[i];
		if (second) {
			second = false;
			if (!insn.code && !insn.dst_reg && !insn.src_reg && !insn.off)
				insn.imm = 0;
		} else if (insn.code == (BPF_LD | BPF_IMM | BPF_DW) &&
			   (insn.src_reg == BPF_PSEUDO_MAP_FD ||
			    insn.src_reg == BPF_PSEUDO_MAP_VALUE)) {
			second = true;
			insn.imm = 0;
		}
		sha_add(&s, &insn, sizeof(insn));
	}
	sha_end(&s);
	for (i = 0; i < 8; i++)
		tag[i] = s.h[i / 4] >> (24 - 8 * (i % 4));
}

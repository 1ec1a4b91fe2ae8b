/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Twelve small computations, the same text for the BPF compiler and for gcc: x is what the last call returned plus a
 * counter, so that no call can be left out. A call is one operation.
 *
 * To add one: a function compute_NAME here and its row in COMPUTE_ROWS. COMPUTE_CALL and COMPUTE_CELL are the
 * includer's: what calling out and finding a cell of a table mean there.
 */
#ifndef INLAY_BPF_BENCH_COMPUTE_H
#define INLAY_BPF_BENCH_COMPUTE_H

/* name, what is printed, calls nothing */
#define COMPUTE_ROWS(ROW)                                  \
	ROW(xorshift, "xorshift, 64 steps", 1)             \
	ROW(rotmix, "rotate mix, 16 rounds", 1)            \
	ROW(csum, "checksum of 1500 bytes", 1)             \
	ROW(fnv1a, "FNV-1a of 64 bytes", 1)                \
	ROW(divmod, "64-bit div and mod, 16", 1)           \
	ROW(primes, "32-bit trial division", 1)            \
	ROW(parse, "branchy parse of 16 bytes", 1)         \
	ROW(call, "helper call, 16", 0)                    \
	ROW(array, "array increment, 16", 0)               \
	ROW(packet, "packet parse", 1)                     \
	ROW(bsearch, "binary search in 1024, 8", 1)        \
	ROW(switch, "switch of 16 cases, 32", 1)

#define COMPUTE_CELLS 256

struct compute_data {
	__u32 words[375];	   /* 1500 bytes */
	__u32 sorted[1024];	   /* ascending */
	__u8 text[64];
	__u8 packet[64][64];	   /* Ethernet, some with a VLAN tag, IPv4, TCP or UDP */
	__u8 code[32];
	__u64 zero; /* 0, which no verifier knows: from a known start it would follow every path there is */
};

#define NO_UNROLL _Pragma("GCC unroll 1")

static __always_inline __u64 compute_xorshift(struct compute_data *d, __u64 x)
{
	x |= 1;
	NO_UNROLL for (int i = 0; i < 64; i++)
	{
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	return x;
}

static __always_inline __u64 compute_rotl(__u64 v, int n)
{
	return v << n | v >> (64 - n);
}

static __always_inline __u64 compute_rotmix(struct compute_data *d, __u64 x)
{
	__u64 a = x, b = x ^ 0x736f6d6570736575, c = ~x, e = x + 0x6c7967656e657261;

	NO_UNROLL for (int i = 0; i < 16; i++)
	{
		a += b;
		b = compute_rotl(b, 13) ^ a;
		a = compute_rotl(a, 32);
		c += e;
		e = compute_rotl(e, 16) ^ c;
		a += e;
		e = compute_rotl(e, 21) ^ a;
		c += b;
		b = compute_rotl(b, 17) ^ c;
		c = compute_rotl(c, 32);
	}
	return a ^ b ^ c ^ e;
}

static __always_inline __u64 compute_csum(struct compute_data *d, __u64 x)
{
	__u64 sum = x & 0xffff;

	NO_UNROLL for (int i = 0; i < 375; i++) sum += d->words[i];
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

static __always_inline __u64 compute_fnv1a(struct compute_data *d, __u64 x)
{
	__u64 h = 0xcbf29ce484222325 ^ x;

	NO_UNROLL for (int i = 0; i < 64; i++) h = (h ^ d->text[i]) * 0x100000001b3;
	return h;
}

static __always_inline __u64 compute_divmod(struct compute_data *d, __u64 x)
{
	__u64 by = (x >> 40) | 3, acc = 0;

	NO_UNROLL for (int i = 0; i < 16; i++)
	{
		__u64 q = x / by, r = x % by;

		acc += q ^ r;
		x = x * 6364136223846793005 + r;
		by = (q >> 7 & 0xffff) | 3;
	}
	return acc;
}

static __always_inline __u64 compute_primes(struct compute_data *d, __u64 x)
{
	__u32 n = 1025 + (x & 0x7fe), prime = 1;

	NO_UNROLL for (__u32 by = 3; by < 56; by += 2)
	{
		if (by * by > n)
			break;
		if (n % by == 0) {
			prime = 0;
			break;
		}
	}
	return x + 2 + prime;
}

static __always_inline __u64 compute_parse(struct compute_data *d, __u64 x)
{
	__u64 number = d->zero, letters = d->zero, other = d->zero;

	NO_UNROLL for (int i = 0; i < 16; i++)
	{
		__u8 c = d->text[(i + x) & 63];

		if (c >= '0' && c <= '9')
			number = number * 10 + c - '0';
		else if ((c | 32) >= 'a' && (c | 32) <= 'z')
			letters = letters * 31 + c;
		else if (c == ' ')
			number += letters;
		else
			other++;
	}
	return number ^ letters ^ other;
}

static __always_inline __u64 compute_call(struct compute_data *d, __u64 x)
{
	NO_UNROLL for (int i = 0; i < 16; i++) x += COMPUTE_CALL() + 1;
	return x;
}

static __always_inline __u64 compute_array(struct compute_data *d, __u64 x)
{
	NO_UNROLL for (int i = 0; i < 16; i++)
	{
		__u32 at = (x + i * 17) % COMPUTE_CELLS;
		__u64 *cell = COMPUTE_CELL(at);

		if (cell)
			*cell += 1;
	}
	return x + 1;
}

static __always_inline __u32 compute_be16(const __u8 *p)
{
	return p[0] << 8 | p[1];
}

static __always_inline __u64 compute_packet(struct compute_data *d, __u64 x)
{
	const __u8 *p = d->packet[x & 63];
	__u32 off = 14, proto = compute_be16(p + 12), ihl, ports;

	if (proto == 0x8100) {
		proto = compute_be16(p + 16);
		off = 18;
	}
	if (proto != 0x0800)
		return x + 1;
	ihl = (p[off] & 15) * 4;
	if (ihl < 20 || ihl > 40 || (p[off] >> 4) != 4)
		return x + 2;
	proto = p[off + 9];
	if (proto != 6 && proto != 17)
		return x + 3;
	off = (off + ihl) & 63;
	if (off > 60)
		return x + 4;
	ports = compute_be16(p + off) << 16 | compute_be16(p + off + 2);
	return x + 5 + (ports ^ proto);
}

static __always_inline __u64 compute_bsearch(struct compute_data *d, __u64 x)
{
	NO_UNROLL for (int i = 0; i < 8; i++)
	{
		__u32 key = x * 2654435761u, at = d->zero;

		NO_UNROLL for (__u32 half = 512; half; half >>= 1) if (d->sorted[(at + half) & 1023] <= key) at += half;
		x += at + 1;
	}
	return x;
}

static __always_inline __u64 compute_switch(struct compute_data *d, __u64 x)
{
	__u64 y = 1;

	NO_UNROLL for (int i = 0; i < 32; i++)
	{
		switch (d->code[(i + x) & 31] & 15) {
		case 0: x += y; break;
		case 1: x -= y; break;
		case 2: x ^= y; break;
		case 3: x |= y; break;
		case 4: x *= 3; break;
		case 5: x >>= 1; break;
		case 6: x <<= 1; break;
		case 7: x = ~x; break;
		case 8: y += x; break;
		case 9: y ^= x >> 3; break;
		case 10: y *= 5; break;
		case 11: y = ~y; break;
		case 12: x += 12; break;
		case 13: y -= 13; break;
		case 14: x ^= 0x5555; break;
		default: y |= 1; break;
		}
	}
	return x ^ y;
}

#endif

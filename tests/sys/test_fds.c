// SPDX-License-Identifier: BSD-2-Clause
// Descriptors: real ones, that keep their object through whatever a process does with descriptors,
// and no longer.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "engine.h"

static struct inlay *in;

static u32 maps(void)
{
	return objects(in, OBJ_MAP);
}

static int new_map(u32 flags)
{
	return map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 4, flags);
}

static void close_and_dup(void)
{
	int fd = new_map(0), d;

	ok(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC, "a descriptor is open and close-on-exec");
	is_int(maps(), 1, "one map is alive");
	d = dup(fd);
	close(fd);
	is_int(maps(), 1, "a dup keeps the map when the first descriptor is closed");
	fd = fcntl(d, F_DUPFD_CLOEXEC, 100);
	close(d);
	is_int(maps(), 1, "fcntl(F_DUPFD_CLOEXEC) keeps it");
	d = open("/dev/null", O_RDONLY);
	is_int(dup3(fd, d, O_CLOEXEC), d, "dup3 onto a placeholder");
	close(fd);
	is_int(maps(), 1, "the placeholder keeps it");
	is_int(elem(in, BPF_MAP_LOOKUP_ELEM, d, &(u32){0}, &(u64){0}, 0), 0, "and is the map");
	close(d);
	is_int(maps(), 0, "the last close lets the map go");
	is_int(elem(in, BPF_MAP_LOOKUP_ELEM, d, &(u32){0}, &(u64){0}, 0), -EBADF,
	       "a closed descriptor is EBADF");
	is_int(elem(in, BPF_MAP_LOOKUP_ELEM, 0, &(u32){0}, &(u64){0}, 0), -EINVAL,
	       "somebody else's is EINVAL");
}

static void by_id(void)
{
	int fd = new_map(0), i, fds[8];
	union bpf_attr a = {};
	u32 id;

	is_int(do_bpf(in, BPF_MAP_GET_NEXT_ID, &a, sizeof(a)), 0, "the map has an id");
	id = a.next_id;
	for (i = 0; i < 8; i++) {
		memset(&a, 0, sizeof(a));
		a.map_id = id;
		fds[i] = do_bpf(in, BPF_MAP_GET_FD_BY_ID, &a, sizeof(a));
	}
	/* closed in one go: the kernel merges equal events */
	for (i = 0; i < 7; i++)
		close(fds[i]);
	close(fd);
	is_int(maps(), 1, "one of nine openings keeps the map");
	close(fds[7]);
	is_int(maps(), 0, "the last of nine lets it go");
	memset(&a, 0, sizeof(a));
	a.map_id = id;
	is_int(do_bpf(in, BPF_MAP_GET_FD_BY_ID, &a, sizeof(a)), -ENOENT, "its id is gone");
}

static void mapped(void)
{
	int fd = new_map(BPF_F_MMAPABLE);
	u64 *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), v = 77;
	u32 key = 1;

	ok(p != MAP_FAILED, "anybody's mmap of an mmapable array works");
	elem(in, BPF_MAP_UPDATE_ELEM, fd, &key, &v, 0);
	is_u64(p[1], 77, "it shows what bpf(2) writes");
	p[1] = 78;
	elem(in, BPF_MAP_LOOKUP_ELEM, fd, &key, &v, 0);
	is_u64(v, 78, "and bpf(2) sees what is written there");
	close(fd);
	is_int(maps(), 1, "a mapping keeps the map when all descriptors are closed");
	munmap(p, 4096);
	is_int(maps(), 0, "munmap lets it go");
}

static void judged_mmap(void)
{
	int fd = new_map(BPF_F_MMAPABLE), plain = new_map(0);
	long at = inlay_mmap(in, NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

	ok(at > 0, "inlay_mmap maps");
	munmap((void *)at, 4096);
	is_int(inlay_mmap(in, NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0), -EINVAL,
	       "a private mapping is EINVAL");
	is_int(inlay_mmap(in, NULL, 1 << 20, PROT_READ, MAP_SHARED, fd, 0), -EINVAL,
	       "beyond the end is EINVAL");
	ok(inlay_mmap(in, NULL, 4096, PROT_READ, MAP_SHARED, plain, 0) < 0,
	   "an array without BPF_F_MMAPABLE cannot be mapped");
	ok(ftruncate(fd, 0) < 0, "a user cannot pull the memory away from under the engine");
	close(fd);
	close(plain);
}

static void forked(void)
{
	int fd = new_map(0), go[2];
	pid_t pid;
	char c;

	if (pipe(go))
		return;
	pid = fork();
	if (!pid) {
		close(go[1]);
		_exit(read(go[0], &c, 1) != 0);
	}
	close(go[0]);
	close(fd);
	is_int(maps(), 1, "a child that inherited the descriptor keeps the map");
	close(go[1]);
	waitpid(pid, NULL, 0);
	is_int(maps(), 0, "its end lets the map go");
}

static void passed(void)
{
	char buf[CMSG_SPACE(sizeof(int))] = {}, byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = buf,
			   .msg_controllen = sizeof(buf)};
	int fd = new_map(0), s[2];
	struct cmsghdr *cm = CMSG_FIRSTHDR(&m);

	socketpair(AF_UNIX, SOCK_STREAM, 0, s);
	*cm = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(cm), &fd, sizeof(fd));
	ok(sendmsg(s[0], &m, 0) == 1, "the descriptor goes into a socket");
	close(fd);
	is_int(maps(), 1, "in flight it keeps the map");
	close(s[0]);
	close(s[1]);
	is_int(maps(), 0, "with the socket it goes");
}

static void access_modes(void)
{
	int fd = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 4, BPF_F_RDONLY);
	u32 key = 0;
	u64 v = 0;

	is_int(elem(in, BPF_MAP_UPDATE_ELEM, fd, &key, &v, 0), -EPERM,
	       "BPF_F_RDONLY: no update through the descriptor");
	is_int(elem(in, BPF_MAP_LOOKUP_ELEM, fd, &key, &v, 0), 0, "but lookups");
	is_int(elem(in, BPF_MAP_LOOKUP_ELEM, fcntl(fd, F_DUPFD_CLOEXEC, 0), &key, &v, 0), 0,
	       "also through a dup");
	close(fd);
	fd = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 4, BPF_F_WRONLY);
	is_int(elem(in, BPF_MAP_LOOKUP_ELEM, fd, &key, &v, 0), -EPERM, "BPF_F_WRONLY: no lookup");
	is_int(elem(in, BPF_MAP_UPDATE_ELEM, fd, &key, &v, 0), 0, "but updates");
	close(fd);
}

static void kept_by_program(void)
{
	int map = new_map(0), prog;
	struct bpf_insn insns[] = {
		{BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_FD, 0, map},
		{},
		MOV64_IMM(0, 0),
		EXIT(),
	};
	u32 before = maps();

	prog = prog_load(in, BPF_PROG_TYPE_SOCKET_FILTER, insns, 4);
	ok(prog >= 0, "a program that uses a map loads");
	close(map);
	is_int(maps(), before, "the program keeps the map");
	is_int(objects_settled(in, OBJ_PROG, 1), 1, "one program is alive");
	close(prog);
	is_int(objects_settled(in, OBJ_PROG, 0), 0, "its last close lets it go");
	is_int(maps(), before - 1, "and the map with it");
}

int main(void)
{
	int fds = count_fds();

	in = engine_start();
	close_and_dup();
	by_id();
	mapped();
	judged_mmap();
	forked();
	passed();
	access_modes();
	kept_by_program();
	new_map(BPF_F_MMAPABLE);
	inlay_destroy(in);
	/* a descriptor closed by nobody: the dup of access_modes() and the last map are left */
	is_int(count_fds(), fds + 2, "the engine leaves no descriptor of its own behind");
	return tap_done();
}

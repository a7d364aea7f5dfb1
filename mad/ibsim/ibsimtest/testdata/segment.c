/*
 * segment.c: preloaded into OpenSM before libumad2sim, it sends the subnet
 * administrator's tables as RMPP segments, which on a real host the kernel
 * makes. libumad2sim by itself sends the first 256 bytes of a table.
 *
 * OpenSM writes a struct ib_user_mad with the whole table after it to a file
 * descriptor that libumad2sim has made up (1024 and above). The segments go
 * straight to the socket behind it, as messages of ibsim (struct sim_request):
 * no lock of libumad2sim is held while the socket makes us wait. There is no
 * window and no ACK: between local sockets nothing gets lost.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <endian.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

enum {
	FIRST_FD = 1024, LAST_FD = 2047,	/* libumad2sim's own */
	UMAD = 64,	/* struct ib_user_mad: the address before the MAD */
	UMAD_QPN = 20, UMAD_LID = 28,
	MAD = 256, HEADER = 56, DATA = MAD - HEADER,
	CLASS_HEADER = 20,	/* of SubnAdm: PayloadLength counts it too */

	CLASS = 1, METHOD = 3,	/* offsets in a MAD */
	RMPP_VERSION = 24, RMPP_TYPE, RMPP_FLAGS, RMPP_STATUS,
	RMPP_SEGMENT = 28, RMPP_LENGTH = 32,

	SUBN_ADM = 3, RESPONSE = 0x80,
	ACTIVE = 1, FIRST = 2, LAST = 4,
	NO_TIME = 0x1f << 3,	/* RRespTime: not given */
};

struct message {
	uint32_t dlid, slid, dqp, sqp, status, pad;
	uint64_t length;
	uint8_t mad[MAD];
};

static void put32(uint8_t *p, uint32_t v)
{
	v = htonl(v);
	memcpy(p, &v, sizeof v);
}

/* data_socket finds the socket that is connected to ibsim's "NAME:outN". */
static int data_socket(void)
{
	static int found = -1;

	for (int fd = 3; found < 0 && fd < FIRST_FD; fd++) {
		struct sockaddr_un a = { 0 };
		socklen_t len = sizeof a;

		if (getpeername(fd, (struct sockaddr *)&a, &len) == 0 &&
		    a.sun_family == AF_UNIX && a.sun_path[0] == 0 &&
		    len > sizeof a.sun_family + 1 && strstr(a.sun_path + 1, ":out"))
			found = fd;
	}
	return found;
}

static int send_segments(int fd, const uint8_t *umad, size_t size)
{
	const uint8_t *mad = umad + UMAD, *table = mad + HEADER;
	uint32_t rest = size - UMAD - HEADER;
	uint32_t segments = rest ? (rest + DATA - 1) / DATA : 1;
	uint32_t total = rest + segments * CLASS_HEADER;
	uint16_t lid;

	memcpy(&lid, umad + UMAD_LID, sizeof lid);
	for (uint32_t n = 1; n <= segments; n++) {
		uint32_t here = rest < DATA ? rest : DATA;
		struct message m = {
			.dlid = lid,	/* big endian in both */
			.sqp = htonl(1),
			.length = htobe64(MAD),
		};

		memcpy(&m.dqp, umad + UMAD_QPN, sizeof m.dqp);
		memcpy(m.mad, mad, HEADER);
		memcpy(m.mad + HEADER, table, here);
		m.mad[RMPP_VERSION] = 1;
		m.mad[RMPP_TYPE] = 1;
		m.mad[RMPP_FLAGS] = NO_TIME | ACTIVE | (n == 1 ? FIRST : 0) | (n == segments ? LAST : 0);
		m.mad[RMPP_STATUS] = 0;
		put32(m.mad + RMPP_SEGMENT, n);
		put32(m.mad + RMPP_LENGTH,
		      n == segments ? here + CLASS_HEADER : n == 1 ? total : 0);
		if (send(fd, &m, sizeof m, 0) < 0)
			return -1;
		table += here;
		rest -= here;
	}
	return 0;
}

ssize_t write(int fd, const void *buf, size_t size)
{
	static ssize_t (*next)(int, const void *, size_t);
	const uint8_t *mad = (const uint8_t *)buf + UMAD;
	int sock;

	if (!next)
		next = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
	if (fd < FIRST_FD || fd > LAST_FD || size < UMAD + HEADER ||
	    mad[CLASS] != SUBN_ADM || !(mad[METHOD] & RESPONSE) ||
	    !(mad[RMPP_FLAGS] & ACTIVE) || (sock = data_socket()) < 0)
		return next(fd, buf, size);
	return send_segments(sock, buf, size) < 0 ? -1 : (ssize_t)size;
}

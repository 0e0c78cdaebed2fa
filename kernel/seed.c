// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Makes the seed of a virtual-time kernel's random generator repeatable.
 *
 * A User-Mode-Linux kernel takes its first entropy from the host by getrandom(2). Preloaded, this library answers instead,
 * with the output of splitmix64 started from BAKEOFF_SEED (decimal). All other sources of that kernel are virtual time
 * and its command line, so that ports, sequence numbers, hash seeds and netem's draws follow from the seed.
 * Without BAKEOFF_SEED it answers ENOSYS, so that a mistake is seen and not taken for chance.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static uint64_t state;
static int started;

static uint64_t splitmix64(void)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	unsigned char *out = buffer;
	size_t done = 0;

	(void)flags;
	if (!started) {
		const char *seed = getenv("BAKEOFF_SEED");

		if (!seed) {
			errno = ENOSYS;
			return -1;
		}
		state = strtoull(seed, NULL, 10);
		started = 1;
	}
	while (done < length) {
		uint64_t word = splitmix64();
		size_t part = length - done < sizeof(word) ? length - done : sizeof(word);

		memcpy(out + done, &word, part);
		done += part;
	}
	return (ssize_t)length;
}

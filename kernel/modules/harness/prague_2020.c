// SPDX-License-Identifier: GPL-2.0
/* The form of 2020-08 for prague.c, which says what is printed. */
#include <inttypes.h>
#include <stdio.h>

#include "../tcp_prague/prague_2020.c"

void print_2020(struct sock *sk);

void print_2020(struct sock *sk)
{
	struct prague_2020 *ca = prague_ca(sk);

	printf(" %" PRId64 " %" PRIu64 " %u\n", ca->cwnd_cnt, ca->alpha, ca->in_loss);
}

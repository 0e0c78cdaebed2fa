// SPDX-License-Identifier: GPL-2.0
/* The forms of 2020 and 2021 for prague.c, which says what is printed. */
#include <inttypes.h>
#include <stdio.h>

#include "../tcp_prague/prague_2020.c"

void scale_2020(unsigned int scaling);
void age_2020(struct sock *sk);
void print_2020(struct sock *sk);

void scale_2020(unsigned int scaling)
{
	prague_rtt_scaling = scaling;
}

/* Two rounds before scaling begins. */
void age_2020(struct sock *sk)
{
	prague_ca(sk)->round = (of_2021(prague_ca(sk)) ? 500 : 100) - 2;
}

void print_2020(struct sock *sk)
{
	struct prague_2020 *ca = prague_ca(sk);

	printf(" %" PRId64 " %u %u %u %d\n", ca->cwnd_cnt, ca->alpha, ca->in_loss, ca->ai, ca->classic.score);
}

// SPDX-License-Identifier: GPL-2.0
/* The forms of 2019 for prague.c, which says what is printed. */
#include <stdio.h>

#include "../tcp_prague/prague_2019.c"

void print_2019(struct sock *sk);

void print_2019(struct sock *sk)
{
	printf(" %u %u\n", prague_ca(sk)->alpha, sk->snd_cwnd_cnt);
}

/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of tcp_prague share. */
#ifndef BAKEOFF_PRAGUE_H
#define BAKEOFF_PRAGUE_H

#include <linux/math64.h>
#include <net/tcp.h>

/* Payload is never cut below this many bytes per packet. */
#define PRAGUE_MIN_MSS		150
/* Least window, real or virtual, in packets. */
#define PRAGUE_MIN_CWND		2U
/* The units of srtt_us in a second. */
#define PRAGUE_SECOND		8000000ULL
/* A connection's alpha is kept 2^PRAGUE_GAIN_SHIFT times as large; its gain is 1/16. */
#define PRAGUE_GAIN_SHIFT	4

/* Registered as "prague". Its init chooses the ops of 2020-08 if the module parameter says so. */
extern struct tcp_congestion_ops prague_ops;
extern struct tcp_congestion_ops prague_2020_ops;
/* What runs where no ECN was negotiated. */
extern struct tcp_congestion_ops prague_reno_ops;

extern unsigned int prague_form;

void prague_2020_init(struct sock *sk);
/* Gives pacing back to the core, as it was before init. */
void prague_withdraw(struct sock *sk, u8 pacing_shift);
void prague_become_reno(struct sock *sk);

int prague_ect1_register(void);
void prague_ect1_unregister(void);

/* Bytes of a packet of the present segment size, without the option of AccECN. */
static inline u32 prague_mtu(struct sock *sk)
{
	return tcp_mss_to_mtu(sk, tcp_sk(sk)->mss_cache);
}

static inline u64 prague_divide_closest(u64 dividend, u64 divisor)
{
	return div64_u64(dividend + divisor / 2, divisor);
}

#endif

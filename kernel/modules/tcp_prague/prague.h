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

/* How many packets are sent at once. */
struct prague_burst {
	u16 packets;
	u16 core_segs;	/* sk_gso_max_segs, as the core sets it */
	bool bounded;	/* the module has lowered it */
};

static inline u16 prague_segs(const struct prague_burst *burst)
{
	return burst->bounded ? min(burst->core_segs, burst->packets) : burst->core_segs;
}

/* Whether the core adds a segment or more to what goes out at once, because the RTT is so short (tcp_tso_rtt_log). */
static inline bool prague_core_adds(const struct sock *sk)
{
	u32 halvings = tcp_min_rtt(tcp_sk(sk)) >> READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_tso_rtt_log);

	return halvings < 32 && sk->sk_gso_max_size >> halvings >= tcp_sk(sk)->mss_cache;
}

/*
 * Sets the burst, and keeps the core from longer ones where it would send them. Elsewhere sk_gso_max_segs stays as it is: a
 * socket that it bounds keeps its data in small buffers, which the core defers less often. Where a route changes, the core
 * sets its own value again: then that one counts from now on.
 */
static inline void prague_set_burst(struct sock *sk, struct prague_burst *burst, u64 packets)
{
	if (sk->sk_gso_max_segs != prague_segs(burst))
		burst->core_segs = sk->sk_gso_max_segs;
	/* The core stops with a bound of 0, which a number cut to 16 bits could be. */
	burst->packets = min_t(u64, packets, U16_MAX);
	burst->bounded = prague_core_adds(sk);
	sk->sk_gso_max_segs = prague_segs(burst);
}

/* Gives the length of bursts back to the core. */
static inline void prague_release_burst(struct sock *sk, const struct prague_burst *burst)
{
	if (sk->sk_gso_max_segs == prague_segs(burst))
		sk->sk_gso_max_segs = burst->core_segs;
}

static inline u64 prague_divide_closest(u64 dividend, u64 divisor)
{
	return div64_u64(dividend + divisor / 2, divisor);
}

#endif

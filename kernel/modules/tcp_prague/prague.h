/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of tcp_prague share. */
#ifndef BAKEOFF_PRAGUE_H
#define BAKEOFF_PRAGUE_H

#include <linux/inet_diag.h>
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

/* Values of the module parameter prague_form. */
enum prague_form { PRAGUE_0_7, PRAGUE_2020_08, PRAGUE_2020_04, PRAGUE_2021_06, PRAGUE_2019_11, PRAGUE_2019_09, PRAGUE_FORMS };

/* Registered as "prague". Its init chooses the ops of an older version if the module parameter says so. */
extern struct tcp_congestion_ops prague_ops;
extern struct tcp_congestion_ops prague_2020_ops;
extern struct tcp_congestion_ops prague_2019_ops;
/* What runs where no ECN was negotiated. */
extern struct tcp_congestion_ops prague_reno_ops;

extern unsigned int prague_form;

void prague_2020_init(struct sock *sk, enum prague_form form);
void prague_2019_init(struct sock *sk, enum prague_form form);
/* Gives pacing back to the core, as it was before init. */
void prague_withdraw(struct sock *sk, u8 pacing_shift);
void prague_become_reno(struct sock *sk);

int prague_ect1_register(void);
void prague_ect1_unregister(void);

/* A parameter between two bounds: what is outside is refused with EINVAL. */
#define BOUNDED(name, least, most, text)						\
	static int set_##name(const char *value, const struct kernel_param *param)	\
	{										\
		return param_set_uint_minmax(value, param, least, most);		\
	}										\
	static const struct kernel_param_ops name##_ops = {				\
		.set = set_##name, .get = param_get_uint,				\
	};										\
	module_param_cb(name, &name##_ops, &name, 0644);				\
	MODULE_PARM_DESC(name, text)

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

/* ss prints alpha as it does that of dctcp, in 2^-10, and the counts of the round in packets. */
static inline size_t prague_info(const struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info, bool saw_ce, u32 alpha,
				 u32 old_delivered, u32 old_delivered_ce)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (!(ext & (1 << (INET_DIAG_DCTCPINFO - 1))) && !(ext & (1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	memset(&info->dctcp, 0, sizeof(info->dctcp));
	info->dctcp.dctcp_enabled = 1;
	info->dctcp.dctcp_ce_state = saw_ce;
	info->dctcp.dctcp_alpha = alpha;
	info->dctcp.dctcp_ab_ecn = tp->delivered_ce - old_delivered_ce;
	info->dctcp.dctcp_ab_tot = tp->delivered - old_delivered;
	*attr = INET_DIAG_DCTCPINFO;
	return sizeof(info->dctcp);
}

static inline u64 prague_divide_closest(u64 dividend, u64 divisor)
{
	return div64_u64(dividend + divisor / 2, divisor);
}

#endif

// SPDX-License-Identifier: GPL-2.0
/*
 * TCP Prague as it was in August 2020, without scaling by the RTT, which the published experiments used.
 *
 * Growth and reductions are gathered in cwnd_cnt, 2^-20 packets, and worked off by one packet per ACK. alpha begins at 1
 * and is followed from the first mark on. There is no rate mode, and packets keep their size.
 */
#include <linux/inet_diag.h>
#include <linux/module.h>

#include "prague.h"

#define ONE		(1LL << 20)
#define MAX_ALPHA	((u64)ONE << PRAGUE_GAIN_SHIFT)
/* A burst is 2^-12 s of the rate, and a pair of packets at least. */
#define BURST_SHIFT	12
#define MIN_BURST	2U

struct prague_2020 {
	s64 cwnd_cnt;		/* earned, or owed if negative: 2^-20 packets */
	s64 loss_cwnd_cnt;	/* before the last loss */
	u64 alpha;		/* smoothed fraction of marks, 2^24 is 1 */
	u32 loss_cwnd;		/* snd_cwnd before the last loss */
	u32 old_delivered;	/* when the round began */
	u32 old_delivered_ce;
	u32 next_seq;		/* the round ends when this is acknowledged */
	u32 seen_ce;		/* delivered_ce at the last ACK */
	u32 ece;		/* packets that this ACK reports as marked */
	struct prague_burst burst;
	u8 pacing_shift;	/* sk_pacing_shift before init */
	u8 saw_ce : 1,
	   in_loss : 1;
};

static struct prague_2020 *prague_ca(struct sock *sk)
{
	return inet_csk_ca(sk);
}

static void new_round(struct sock *sk)
{
	struct prague_2020 *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	ca->next_seq = tp->snd_nxt;
	ca->old_delivered = tp->delivered;
	ca->old_delivered_ce = tp->delivered_ce;
}

/* The pacing timer may have stopped the flow just before its window did: then there are data that wait. */
static bool may_grow(struct sock *sk)
{
	return tcp_is_cwnd_limited(sk) ||
	       (READ_ONCE(sk->sk_pacing_status) == SK_PACING_NEEDED && !tcp_write_queue_empty(sk));
}

/* One packet per ACK of what is owed or earned. On its way down snd_cwnd takes ssthresh along. */
static void step(struct sock *sk)
{
	struct prague_2020 *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tcp_snd_cwnd(tp);

	if (ca->cwnd_cnt <= -ONE) {
		ca->cwnd_cnt += ONE;
		if (cwnd <= PRAGUE_MIN_CWND) {
			cwnd = PRAGUE_MIN_CWND + 1;
			ca->cwnd_cnt = 0;
		}
		tcp_snd_cwnd_set(tp, cwnd - 1);
		tp->snd_ssthresh = cwnd - 1;
	} else if (ca->cwnd_cnt >= ONE) {
		ca->cwnd_cnt -= ONE;
		tcp_snd_cwnd_set(tp, min(cwnd + 1, tp->snd_cwnd_clamp));
	}
}

static void update_cwnd(struct sock *sk, const struct rate_sample *rs)
{
	struct prague_2020 *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	s64 acked = rs->acked_sacked;

	if (ca->ece) {
		ca->saw_ce = 1;
		acked -= ca->ece;
	}
	if (acked > 0 && !ca->in_loss && may_grow(sk)) {
		if (tcp_in_slow_start(tp)) {
			acked = tcp_slow_start(tp, acked);
			if (!acked)
				return;
		}
		ca->cwnd_cnt += max_t(u64, prague_divide_closest(acked * ONE, max(tcp_snd_cwnd(tp), 1U)), acked);
	}
	step(sk);
}

static void update_alpha(struct sock *sk)
{
	struct prague_2020 *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (before(tp->snd_una, ca->next_seq))
		return;
	if (ca->saw_ce) {
		u64 marked = tp->delivered_ce - ca->old_delivered_ce;
		u32 delivered = max(1U, tp->delivered - ca->old_delivered);

		marked = div64_u64(marked * ONE, delivered);
		ca->alpha = min(ca->alpha - (ca->alpha >> PRAGUE_GAIN_SHIFT) + marked, MAX_ALPHA);
	}
	new_round(sk);
}

static void update_pacing(struct sock *sk)
{
	struct prague_2020 *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 mtu = prague_mtu(sk);
	u64 rate = PRAGUE_SECOND * mtu;

	if (tcp_snd_cwnd(tp) < tp->snd_ssthresh / 2)
		rate <<= 1;
	if (tp->srtt_us)
		rate = div64_u64(rate, tp->srtt_us);
	rate *= max_t(u64, tcp_snd_cwnd(tp), tcp_packets_in_flight(tp));
	rate = min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate));
	WRITE_ONCE(sk->sk_pacing_rate, rate);
	prague_set_burst(sk, &ca->burst, max_t(u64, div64_u64(rate, mtu) >> BURST_SHIFT, MIN_BURST));
}

static void prague_2020_cong_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	update_cwnd(sk, rs);
	update_alpha(sk);
	update_pacing(sk);
}

static void prague_2020_in_ack_event(struct sock *sk, u32 flags)
{
	struct prague_2020 *ca = prague_ca(sk);
	u32 delivered_ce = tcp_sk(sk)->delivered_ce;

	ca->ece = delivered_ce - ca->seen_ce;
	ca->seen_ce = delivered_ce;
}

static void enter_cwr(struct sock *sk)
{
	struct prague_2020 *ca = prague_ca(sk);

	/* alpha / 2 of the window, rounded, from 2^-24 to 2^-20 */
	ca->cwnd_cnt -= (ca->alpha * tcp_snd_cwnd(tcp_sk(sk)) + (1 << PRAGUE_GAIN_SHIFT)) >> (PRAGUE_GAIN_SHIFT + 1);
}

/* Half of what is left when cwnd_cnt is worked off. */
static void enter_loss(struct sock *sk)
{
	struct prague_2020 *ca = prague_ca(sk);

	ca->loss_cwnd = tcp_snd_cwnd(tcp_sk(sk));
	ca->loss_cwnd_cnt = ca->cwnd_cnt;
	ca->cwnd_cnt -= ca->loss_cwnd * ONE / 2 + (ca->cwnd_cnt >> 1);
	ca->in_loss = 1;
}

static void prague_2020_set_state(struct sock *sk, u8 new_state)
{
	if (new_state == inet_csk(sk)->icsk_ca_state)
		return;
	if (new_state == TCP_CA_Recovery)
		enter_loss(sk);
	else if (new_state == TCP_CA_CWR)
		enter_cwr(sk);
	else if (new_state == TCP_CA_Open)
		prague_ca(sk)->in_loss = 0;
}

static void prague_2020_cwnd_event(struct sock *sk, enum tcp_ca_event ev)
{
	if (ev == CA_EVENT_LOSS)
		enter_loss(sk);
}

/* Reductions wait in cwnd_cnt. */
static u32 prague_2020_ssthresh(struct sock *sk)
{
	return tcp_sk(sk)->snd_ssthresh;
}

static u32 prague_2020_undo_cwnd(struct sock *sk)
{
	struct prague_2020 *ca = prague_ca(sk);

	ca->cwnd_cnt += ca->cwnd_cnt - ca->loss_cwnd_cnt;
	return max(ca->loss_cwnd, tcp_snd_cwnd(tcp_sk(sk)));
}

static u32 prague_2020_min_tso_segs(struct sock *sk)
{
	return prague_ca(sk)->burst.packets;
}

/* ECN was negotiated: prague's own init has seen to that. */
void prague_2020_init(struct sock *sk)
{
	struct prague_2020 *ca = prague_ca(sk);

	BUILD_BUG_ON(sizeof(struct prague_2020) > ICSK_CA_PRIV_SIZE);
	memset(ca, 0, sizeof(*ca));
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	ca->pacing_shift = sk->sk_pacing_shift;
	WRITE_ONCE(sk->sk_pacing_shift, BURST_SHIFT);
	ca->seen_ce = tcp_sk(sk)->delivered_ce;
	ca->alpha = MAX_ALPHA;
	prague_set_burst(sk, &ca->burst, MIN_BURST);
	new_round(sk);
}

static void prague_2020_release(struct sock *sk)
{
	const struct prague_2020 *ca = prague_ca(sk);

	prague_release_burst(sk, &ca->burst);
	prague_withdraw(sk, ca->pacing_shift);
}

static size_t prague_2020_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct prague_2020 *ca = prague_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	if (!(ext & (1 << (INET_DIAG_DCTCPINFO - 1))) && !(ext & (1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	memset(&info->dctcp, 0, sizeof(info->dctcp));
	info->dctcp.dctcp_enabled = 1;
	info->dctcp.dctcp_ce_state = ca->saw_ce;
	info->dctcp.dctcp_alpha = ca->alpha >> (20 + PRAGUE_GAIN_SHIFT - 10);
	info->dctcp.dctcp_ab_ecn = tp->delivered_ce - ca->old_delivered_ce;
	info->dctcp.dctcp_ab_tot = tp->delivered - ca->old_delivered;
	*attr = INET_DIAG_DCTCPINFO;
	return sizeof(info->dctcp);
}

struct tcp_congestion_ops prague_2020_ops __read_mostly = {
	.release	= prague_2020_release,
	.cong_control	= prague_2020_cong_control,
	.in_ack_event	= prague_2020_in_ack_event,
	.set_state	= prague_2020_set_state,
	.cwnd_event	= prague_2020_cwnd_event,
	.ssthresh	= prague_2020_ssthresh,
	.undo_cwnd	= prague_2020_undo_cwnd,
	.min_tso_segs	= prague_2020_min_tso_segs,
	.get_info	= prague_2020_get_info,
	.flags		= TCP_CONG_NEEDS_ECN | TCP_CONG_NEEDS_ACCECN | TCP_CONG_ECT_1_NEGOTIATION |
			  TCP_CONG_NO_FALLBACK_RFC3168 | TCP_CONG_NON_RESTRICTED,
	.owner		= THIS_MODULE,
	.name		= "prague",
};

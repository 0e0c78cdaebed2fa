// SPDX-License-Identifier: GPL-2.0
/*
 * TCP Prague as it was in September and November 2019, which the published experiments of that year used.
 *
 * It grows as Reno on every ACK without an echo. September takes alpha / 2 of the window at the end of each round with
 * marks, and alpha begins at 0. November begins with 1, holds it until the first mark, and reduces on entry to CWR.
 */
#include <linux/module.h>

#include "prague.h"

#define ALPHA_BITS	31
#define MAX_ALPHA	(1ULL << ALPHA_BITS)
#define MIN_BURST	2U

struct prague_2019 {
	u32 alpha;		/* smoothed fraction of marks, 2^31 is 1 */
	u32 old_delivered;	/* when the round began */
	u32 old_delivered_ce;
	u32 next_seq;		/* the round ends when this is acknowledged */
	u32 seen_ce;		/* delivered_ce at the last ACK */
	struct prague_burst burst;
	u8 pacing_shift;	/* sk_pacing_shift before init */
	u8 burst_shift;		/* a burst is 2^-n s of the rate */
	u8 september : 1,
	   ece : 1,		/* this ACK reports marks */
	   saw_ce : 1,
	   lost : 1;		/* a loss set ssthresh */
};

static struct prague_2019 *prague_ca(struct sock *sk)
{
	return inet_csk_ca(sk);
}

static void new_round(struct sock *sk)
{
	struct prague_2019 *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	ca->next_seq = tp->snd_nxt;
	ca->old_delivered = tp->delivered;
	ca->old_delivered_ce = tp->delivered_ce;
}

/* alpha / 2 of the window; round is added before the division by 2^32. */
static void reduce(struct sock *sk, u64 round)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tcp_snd_cwnd(tp);
	u32 cut = ((u64)prague_ca(sk)->alpha * cwnd + round) >> (ALPHA_BITS + 1);

	cwnd = max(cwnd - min(cut, cwnd), PRAGUE_MIN_CWND);
	tcp_snd_cwnd_set(tp, cwnd);
	tp->snd_ssthresh = cwnd;
}

static void end_round(struct sock *sk)
{
	struct prague_2019 *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 delivered = max(1U, tp->delivered - ca->old_delivered);
	u32 marked = tp->delivered_ce - ca->old_delivered_ce;

	if (marked)
		ca->saw_ce = 1;
	if (ca->saw_ce || ca->september) {
		u64 fraction = min(div64_u64((u64)marked << ALPHA_BITS, delivered), MAX_ALPHA);

		ca->alpha += (u32)(fraction >> PRAGUE_GAIN_SHIFT) - (ca->alpha >> PRAGUE_GAIN_SHIFT);
	}
	if (ca->september && marked)
		reduce(sk, 0);
	new_round(sk);
}

/* Of payload: 1500 bytes on the wire are 1448. */
static void update_pacing(struct sock *sk)
{
	struct prague_2019 *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tcp_snd_cwnd(tp);
	u64 window = max(cwnd, tp->packets_out);
	u64 rate = div64_u64(PRAGUE_SECOND * tp->mss_cache, max(tp->srtt_us, 1U));

	if (cwnd < tp->snd_ssthresh / 2) {
		rate *= window * 2;
	} else if (ca->september) {
		rate *= window + 2;
	} else {
		rate *= window;
		if (tp->packets_out < cwnd)
			rate += div64_u64(rate * (1 + tp->packets_out), max3(cwnd, tcp_packets_in_flight(tp), 1U));
	}
	rate = min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate));
	WRITE_ONCE(sk->sk_pacing_rate, rate);
	prague_set_burst(sk, &ca->burst, max_t(u64, div64_u64(rate >> ca->burst_shift, tp->mss_cache), MIN_BURST));
}

static void prague_2019_cong_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	struct prague_2019 *ca = prague_ca(sk);

	if (!ca->ece && rs->acked_sacked > 0)
		tcp_reno_cong_avoid(sk, ack, rs->acked_sacked);
	if (!before(tcp_sk(sk)->snd_una, ca->next_seq))
		end_round(sk);
	update_pacing(sk);
}

static void prague_2019_in_ack_event(struct sock *sk, u32 flags)
{
	struct prague_2019 *ca = prague_ca(sk);
	u32 delivered_ce = tcp_sk(sk)->delivered_ce;

	ca->ece = delivered_ce != ca->seen_ce;
	ca->seen_ce = delivered_ce;
}

/* A loss halves ssthresh, and the window follows when its repair is over. */
static void prague_2019_set_state(struct sock *sk, u8 new_state)
{
	struct prague_2019 *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u8 state = inet_csk(sk)->icsk_ca_state;

	if (new_state == state)
		return;
	if (new_state == TCP_CA_CWR && !ca->september) {
		reduce(sk, MAX_ALPHA);
	} else if (new_state == TCP_CA_Recovery) {
		ca->lost = 1;
		tp->snd_ssthresh = max(tcp_snd_cwnd(tp) / 2, PRAGUE_MIN_CWND);
	} else if (new_state == TCP_CA_Loss && state < TCP_CA_Recovery) {
		/* The core has taken the window down already. */
		tp->snd_ssthresh = max(tp->prior_cwnd / 2, PRAGUE_MIN_CWND);
	} else if (new_state == TCP_CA_Open && ca->lost) {
		ca->lost = 0;
		tcp_snd_cwnd_set(tp, max(min(tcp_snd_cwnd(tp), tp->snd_ssthresh), PRAGUE_MIN_CWND));
	}
}

/* Marks and losses reduce by themselves. */
static u32 prague_2019_ssthresh(struct sock *sk)
{
	return max(tcp_sk(sk)->snd_ssthresh, PRAGUE_MIN_CWND);
}

static u32 prague_2019_min_tso_segs(struct sock *sk)
{
	return prague_ca(sk)->burst.packets;
}

/* ECN was negotiated: prague's own init has seen to that. */
void prague_2019_init(struct sock *sk, enum prague_form form)
{
	struct prague_2019 *ca = prague_ca(sk);

	BUILD_BUG_ON(sizeof(struct prague_2019) > ICSK_CA_PRIV_SIZE);
	memset(ca, 0, sizeof(*ca));
	ca->september = form == PRAGUE_2019_09;
	/* 0.5 ms and 250 us */
	ca->burst_shift = ca->september ? 11 : 12;
	ca->alpha = ca->september ? 0 : MAX_ALPHA;
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	ca->pacing_shift = sk->sk_pacing_shift;
	WRITE_ONCE(sk->sk_pacing_shift, ca->burst_shift);
	ca->seen_ce = tcp_sk(sk)->delivered_ce;
	prague_set_burst(sk, &ca->burst, MIN_BURST);
	new_round(sk);
}

static void prague_2019_release(struct sock *sk)
{
	const struct prague_2019 *ca = prague_ca(sk);

	prague_release_burst(sk, &ca->burst);
	prague_withdraw(sk, ca->pacing_shift);
}

static size_t prague_2019_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct prague_2019 *ca = prague_ca(sk);

	return prague_info(sk, ext, attr, info, ca->saw_ce, ca->alpha >> (ALPHA_BITS - 10), ca->old_delivered,
			   ca->old_delivered_ce);
}

struct tcp_congestion_ops prague_2019_ops __read_mostly = {
	.release	= prague_2019_release,
	.cong_control	= prague_2019_cong_control,
	.in_ack_event	= prague_2019_in_ack_event,
	.set_state	= prague_2019_set_state,
	.ssthresh	= prague_2019_ssthresh,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.min_tso_segs	= prague_2019_min_tso_segs,
	.get_info	= prague_2019_get_info,
	.flags		= TCP_CONG_NEEDS_ECN | TCP_CONG_NEEDS_ACCECN | TCP_CONG_ECT_1_NEGOTIATION |
			  TCP_CONG_NO_FALLBACK_RFC3168 | TCP_CONG_NON_RESTRICTED,
	.owner		= THIS_MODULE,
	.name		= "prague",
};

// SPDX-License-Identifier: GPL-2.0
/*
 * TCP Prague as it was in April 2020, August 2020 and June 2021, which the published experiments used.
 *
 * Growth and reductions are gathered in cwnd_cnt, 2^-20 packets, and worked off by one packet per ACK. alpha begins at 1
 * and is followed from the first mark on. There is no rate mode, and packets keep their size.
 *
 * In April a loss does not end slow start, where nothing works cwnd_cnt off, and the guess at classic AQMs is on. June 2021
 * is August, but growth is scaled by the RTT, and a flow grows only where its window limits it.
 */
#include <linux/module.h>

#include "classic_ecn.h"
#include "prague.h"

#define ONE		(1LL << 20)
#define MAX_ALPHA	((u64)ONE << PRAGUE_GAIN_SHIFT)
/* A burst is 2^-12 s of the rate, and a pair of packets at least. */
#define BURST_SHIFT	12
#define MIN_BURST	2U
/* RTTs of scaling are counted in 128 us, beyond srtt_us; longer ones than 100 ms are not scaled. */
#define RTT_SHIFT	(3 + 7)
#define MAX_SCALED_RTT	100000U
/* 16.4 ms and 1.5 ms, in 128 us. */
#define R0		(16384U >> 7)
#define R1		(1536U >> 7)

enum scaling { SCALE_NONE, SCALE_RATE, SCALE_SCALABLE, SCALE_ADDITIVE, SCALE_OF_FORM };

static unsigned int prague_rtt_scaling __read_mostly = SCALE_OF_FORM;
static unsigned int prague_ecn_fallback __read_mostly = 2;

BOUNDED(prague_rtt_scaling, 0, SCALE_OF_FORM,
	"of forms 1 to 3; 0 none, 1 rate, 2 scalable, 3 additive, 4 as in the version; read when a connection is made");
BOUNDED(prague_ecn_fallback, 0, 2,
	"of forms 1 to 3; reduce more behind a classic AQM: 0 no, 1 yes, 2 as in the version; read when a connection is made");

struct prague_2020 {
	s64 cwnd_cnt;		/* earned, or owed if negative: 2^-20 packets */
	s64 loss_cwnd_cnt;	/* before the last loss */
	struct classic_ecn classic;
	u32 alpha;		/* smoothed fraction of marks, 2^24 is 1 */
	u32 ai;			/* growth per window of ACKs, 2^-20 packets */
	u32 alpha_stamp;	/* us, of the last update of alpha */
	u32 cwr_stamp;		/* us, of the last reduction by marks */
	u32 round;		/* since slow start was left */
	u32 loss_cwnd;		/* snd_cwnd before the last loss */
	u32 old_delivered;	/* when the round began */
	u32 old_delivered_ce;
	u32 next_seq;		/* the round ends when this is acknowledged */
	u32 seen_ce;		/* delivered_ce at the last ACK */
	u16 ece;		/* packets that this ACK reports as marked */
	struct prague_burst burst;
	u8 pacing_shift;	/* sk_pacing_shift before init */
	u8 form : 2,		/* enum prague_form */
	   scaling : 2,
	   fallback : 1,
	   saw_ce : 1,
	   in_loss : 1;
};

static struct prague_2020 *prague_ca(struct sock *sk)
{
	return inet_csk_ca(sk);
}

static bool of_2021(const struct prague_2020 *ca)
{
	return ca->form == PRAGUE_2021_06;
}

/* The RTT whose growth is imitated, in us. */
static u32 target_rtt(const struct prague_2020 *ca)
{
	return of_2021(ca) ? 25000 : 15000;
}

/* Whether the flow imitates another RTT by now. */
static bool active(struct sock *sk)
{
	struct prague_2020 *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	return ca->scaling != SCALE_NONE && !tcp_in_slow_start(tp) && ca->round >= (of_2021(ca) ? 500 : 100) &&
	       tp->srtt_us >> 3 <= MAX_SCALED_RTT;
}

/* Whether a virtual RTT has passed since a stamp, or need not. */
static bool target_passed(struct sock *sk, u32 stamp)
{
	struct prague_2020 *ca = prague_ca(sk);
	u32 target = target_rtt(ca);

	if (ca->scaling == SCALE_ADDITIVE)
		target += tcp_sk(sk)->srtt_us >> 3;
	return ca->scaling == SCALE_SCALABLE || !active(sk) || (u32)tcp_sk(sk)->tcp_mstamp - stamp >= target;
}

static u32 growth(struct sock *sk)
{
	struct prague_2020 *ca = prague_ca(sk);
	u32 target = target_rtt(ca) >> 7;
	u64 rtt = tcp_sk(sk)->srtt_us >> RTT_SHIFT;

	if (!active(sk))
		return ONE;
	if (ca->scaling == SCALE_SCALABLE)
		return (R0 / 8 + min_t(u64, max_t(u64, rtt, R1) - R1, R0)) * rtt * ONE / (R0 * R0);
	if (ca->scaling == SCALE_ADDITIVE)
		target += rtt;
	return rtt >= target ? ONE : prague_divide_closest(rtt * rtt * ONE, target * target);
}

static void new_round(struct sock *sk)
{
	struct prague_2020 *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	ca->next_seq = tp->snd_nxt;
	ca->old_delivered = tp->delivered;
	ca->old_delivered_ce = tp->delivered_ce;
	ca->ai = growth(sk);
}

/* In 2020 the pacing timer may have stopped the flow just before its window did: then there are data that wait. */
static bool may_grow(struct sock *sk)
{
	return tcp_is_cwnd_limited(sk) ||
	       (!of_2021(prague_ca(sk)) && READ_ONCE(sk->sk_pacing_status) == SK_PACING_NEEDED && !tcp_write_queue_empty(sk));
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
		ca->cwnd_cnt += max_t(u64, prague_divide_closest(acked * ca->ai, max(tcp_snd_cwnd(tp), 1U)), acked);
	}
	step(sk);
}

static void update_alpha(struct sock *sk)
{
	struct prague_2020 *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (before(tp->snd_una, ca->next_seq) || !target_passed(sk, ca->alpha_stamp))
		return;
	if (ca->saw_ce) {
		u64 marked = tp->delivered_ce - ca->old_delivered_ce;
		u32 delivered = max(1U, tp->delivered - ca->old_delivered);

		if (ca->fallback)
			classic_ecn_round(&ca->classic, tcp_min_rtt(tp));
		marked = div64_u64(marked * ONE, delivered);
		ca->alpha = min(ca->alpha - (ca->alpha >> PRAGUE_GAIN_SHIFT) + marked, MAX_ALPHA);
		ca->alpha_stamp = tp->tcp_mstamp;
	}
	if (!tcp_in_slow_start(tp) && ca->round < U32_MAX)
		ca->round++;
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

	ca->ece = min_t(u32, delivered_ce - ca->seen_ce, U16_MAX);
	ca->seen_ce = delivered_ce;
}

static void prague_2020_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct prague_2020 *ca = prague_ca(sk);

	if (ca->fallback && sample->rtt_us >= 0)
		classic_ecn_rtt(&ca->classic, sample->rtt_us);
}

static void enter_cwr(struct sock *sk)
{
	struct prague_2020 *ca = prague_ca(sk);
	u64 alpha = ca->alpha;

	if (!target_passed(sk, ca->cwr_stamp))
		return;
	ca->cwr_stamp = tcp_sk(sk)->tcp_mstamp;
	if (ca->fallback)
		alpha = max_t(u64, alpha, classic_ecn_alpha(&ca->classic) << PRAGUE_GAIN_SHIFT);
	/* alpha / 2 of the window, rounded, from 2^-24 to 2^-20 */
	ca->cwnd_cnt -= (alpha * tcp_snd_cwnd(tcp_sk(sk)) + (1 << PRAGUE_GAIN_SHIFT)) >> (PRAGUE_GAIN_SHIFT + 1);
}

/* Half of what is left when cwnd_cnt is worked off. */
static void enter_loss(struct sock *sk)
{
	struct prague_2020 *ca = prague_ca(sk);

	ca->loss_cwnd = tcp_snd_cwnd(tcp_sk(sk));
	ca->loss_cwnd_cnt = ca->cwnd_cnt;
	ca->cwnd_cnt -= ca->loss_cwnd * ONE / 2 + (ca->cwnd_cnt >> 1);
	ca->in_loss = ca->form != PRAGUE_2020_04;
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
	struct prague_2020 *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 ssthresh = tp->snd_ssthresh;

	if (ca->form == PRAGUE_2020_04)
		ssthresh = max(ssthresh, tcp_snd_cwnd(tp));
	if (ca->fallback)
		classic_ecn_reduction(&ca->classic, ssthresh);
	return ssthresh;
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
void prague_2020_init(struct sock *sk, enum prague_form form)
{
	struct prague_2020 *ca = prague_ca(sk);
	unsigned int scaling = READ_ONCE(prague_rtt_scaling);
	unsigned int fallback = READ_ONCE(prague_ecn_fallback);

	BUILD_BUG_ON(sizeof(struct prague_2020) > ICSK_CA_PRIV_SIZE);
	memset(ca, 0, sizeof(*ca));
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	ca->pacing_shift = sk->sk_pacing_shift;
	WRITE_ONCE(sk->sk_pacing_shift, BURST_SHIFT);
	ca->seen_ce = tcp_sk(sk)->delivered_ce;
	ca->form = form;
	ca->scaling = scaling != SCALE_OF_FORM ? scaling : form == PRAGUE_2021_06 ? SCALE_RATE : SCALE_NONE;
	ca->fallback = fallback != 2 ? fallback : form == PRAGUE_2020_04;
	classic_ecn_init(&ca->classic, tcp_sk(sk)->srtt_us >> 3);
	ca->alpha = MAX_ALPHA;
	ca->alpha_stamp = tcp_sk(sk)->tcp_mstamp;
	/* No reduction yet: longer ago than any virtual RTT. */
	ca->cwr_stamp = ca->alpha_stamp - USEC_PER_SEC;
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

	return prague_info(sk, ext, attr, info, ca->saw_ce, ca->alpha >> (20 + PRAGUE_GAIN_SHIFT - 10), ca->old_delivered,
			   ca->old_delivered_ce);
}

struct tcp_congestion_ops prague_2020_ops __read_mostly = {
	.release	= prague_2020_release,
	.cong_control	= prague_2020_cong_control,
	.in_ack_event	= prague_2020_in_ack_event,
	.pkts_acked	= prague_2020_pkts_acked,
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

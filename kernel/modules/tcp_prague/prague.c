// SPDX-License-Identifier: GPL-2.0
/*
 * TCP Prague 0.7: scalable congestion control for L4S.
 *
 * A flow reduces its window by half the smoothed fraction of CE marks, shares as a flow with an RTT of prague_rtt_target
 * would, and is kept as a rate where its window is small. The fractional window counts 2^-20 packets; snd_cwnd goes
 * towards its ceiling by one packet per ACK. Times of RTTs are in the units of srtt_us, 1/8 us.
 *
 * Per ACK: the window or the rate, alpha once per virtual RTT, the pace, the mode.
 */
#include <linux/module.h>

#include "prague.h"

#define UNIT_SHIFT	20
#define ONE		(1ULL << UNIT_SHIFT)
#define ALPHA_BITS	24
#define MAX_ALPHA	(1ULL << (ALPHA_BITS + PRAGUE_GAIN_SHIFT))
/* A full packet in bytes, in which growth is counted. */
#define MTU_SYS		1500U
/* 100 kbit/s in bytes per second. */
#define MIN_RATE	12500ULL
/* Rates become windows with 2^23 in the place of PRAGUE_SECOND. */
#define SECOND_SHIFT	23
#define HSRTT_SHIFT	7
/* In 2^-7 of the rate. */
#define PACE_OFFSET	4
#define PACE_SHIFT	7
/* Growth is not scaled at longer RTTs. */
#define MAX_SCALED_RTT	(100000U << 3)

static unsigned int prague_burst_shift __read_mostly = 12;
static unsigned int prague_max_tso_segs __read_mostly;
static unsigned int prague_rtt_transition __read_mostly = 4;
static unsigned int prague_rtt_target __read_mostly = 25000;
static unsigned int prague_alpha_mode __read_mostly;
static unsigned int prague_cwnd_mode __read_mostly = 2;
static unsigned int prague_cwnd_transit __read_mostly = 4;

BOUNDED(prague_burst_shift, 0, 31, "a burst is 2^-n s of the rate");
BOUNDED(prague_max_tso_segs, 0, 65535, "most packets of a burst; 0: no such bound");
BOUNDED(prague_rtt_transition, 0, UINT_MAX, "rounds out of slow start before the RTT of the target is imitated");
BOUNDED(prague_rtt_target, 128, 1000000, "the RTT that is imitated, in us");
BOUNDED(prague_alpha_mode, 0, 1, "alpha at the start: 0, and the first mark halves the window; or 1");
BOUNDED(prague_cwnd_mode, 0, 3, "0 window, 1 rate, 2 and 3 begin so and switch; read when a connection is made");
BOUNDED(prague_cwnd_transit, 0, 65535, "windows up to so many packets of 1500 bytes are kept as rates");

struct prague {
	u64 cwr_stamp;		/* us, of the last reduction by marks */
	u64 alpha_stamp;	/* us, of the last update of alpha */
	u64 alpha;		/* smoothed fraction of marks, 2^28 is 1 */
	u64 ai;			/* growth per window of ACKs, 2^-20 packets */
	u64 hsrtt;		/* slow average of srtt_us, times 2^7 */
	u64 frac_cwnd;		/* 2^-20 packets */
	u64 rate;		/* bytes of whole packets per second */
	u64 loss_rate;		/* the rate before the last loss */
	u32 loss_cwnd;		/* snd_cwnd before it */
	u32 mtu;		/* bytes of a full packet of this connection */
	u32 old_delivered;	/* when the round began */
	u32 old_delivered_ce;
	u32 next_seq;		/* the round ends when this is acknowledged */
	u32 round;		/* since slow start was left */
	u32 seen_ce;		/* delivered_ce at the last ACK */
	u16 ece;		/* packets that this ACK reports as marked */
	u16 mss;		/* bytes of payload that update_mtu chose; 0: none yet */
	struct prague_burst burst;
	u8 pacing_shift;	/* sk_pacing_shift before init */
	u8 saw_ce : 1,
	   alpha_from_1 : 1,
	   switching : 1,
	   rate_mode : 1,
	   in_loss : 1;
};

static struct prague *prague_ca(struct sock *sk)
{
	return inet_csk_ca(sk);
}

static u64 target_rtt(void)
{
	return (u64)READ_ONCE(prague_rtt_target) << 3;
}

static u64 virtual_rtt(const struct sock *sk)
{
	return max_t(u64, target_rtt(), tcp_sk(sk)->srtt_us);
}

/* Whether the flow imitates another RTT by now. */
static bool active(struct sock *sk)
{
	return !tcp_in_slow_start(tcp_sk(sk)) && prague_ca(sk)->round >= READ_ONCE(prague_rtt_transition);
}

static bool by_rate(struct sock *sk)
{
	return prague_ca(sk)->rate_mode && active(sk);
}

/* Whether a time of the target's length has passed since a stamp, or need not. */
static bool target_passed(struct sock *sk, u64 stamp)
{
	return !active(sk) || READ_ONCE(prague_rtt_target) <= tcp_sk(sk)->tcp_mstamp - stamp;
}

/* Bytes per second of one packet per RTT. */
static u64 packet_rate(struct sock *sk)
{
	u64 rate = PRAGUE_SECOND * prague_mtu(sk);
	u32 srtt = tcp_sk(sk)->srtt_us;

	return srtt ? div64_u64(rate, srtt) : rate;
}

static u64 window_to_rate(struct sock *sk)
{
	return max(MIN_RATE, mul_u64_u64_shr(packet_rate(sk), prague_ca(sk)->frac_cwnd, UNIT_SHIFT));
}

static u64 rate_to_window(struct sock *sk, u64 rate)
{
	u64 rtt = prague_ca(sk)->hsrtt >> HSRTT_SHIFT ?: tcp_sk(sk)->srtt_us;

	return DIV64_U64_ROUND_UP(mul_u64_u64_shr(rate, rtt, SECOND_SHIFT - UNIT_SHIFT), prague_mtu(sk));
}

static u32 whole_window(struct sock *sk)
{
	u64 packets = (prague_ca(sk)->frac_cwnd + ONE - 1) >> UNIT_SHIFT;

	return min_t(u64, max_t(u64, packets, PRAGUE_MIN_CWND), tcp_sk(sk)->snd_cwnd_clamp);
}

static void set_ai(struct sock *sk)
{
	struct prague *ca = prague_ca(sk);
	u64 srtt = tcp_sk(sk)->srtt_us;
	u64 target = target_rtt();

	if (ca->round < READ_ONCE(prague_rtt_transition) || !srtt || srtt > MAX_SCALED_RTT || srtt >= target)
		ca->ai = ONE;
	else
		ca->ai = prague_divide_closest((srtt << UNIT_SHIFT) * srtt, target * target);
}

static void cwnd_changed(struct sock *sk)
{
	tcp_sk(sk)->snd_cwnd_stamp = tcp_jiffies32;
	set_ai(sk);
}

static void new_round(struct sock *sk)
{
	struct prague *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	ca->next_seq = tp->snd_nxt;
	ca->old_delivered = tp->delivered;
	ca->old_delivered_ce = tp->delivered_ce;
	if (!tcp_in_slow_start(tp)) {
		ca->round++;
		if (!ca->round)
			ca->round = READ_ONCE(prague_rtt_transition);
	}
	set_ai(sk);
}

static void grow(struct sock *sk, u64 acked)
{
	struct prague *ca = prague_ca(sk);
	u32 mtu = prague_mtu(sk);

	if (by_rate(sk)) {
		u64 rtt = virtual_rtt(sk);
		u64 increase = div64_u64((acked * MTU_SYS) << SECOND_SHIFT, rtt);
		u64 packets = DIV64_U64_ROUND_UP(ca->rate * rtt, (u64)mtu << SECOND_SHIFT);

		if (packets)
			ca->rate += prague_divide_closest(increase, packets);
		ca->frac_cwnd = max(ca->frac_cwnd + acked, rate_to_window(sk, ca->rate));
	} else {
		u64 increase = acked * ca->ai;

		if (ca->frac_cwnd)
			increase = prague_divide_closest(increase << UNIT_SHIFT, ca->frac_cwnd);
		increase = div64_u64(increase * MTU_SYS, mtu);
		ca->frac_cwnd += max(acked, increase);
		ca->rate = max(ca->rate + acked, window_to_rate(sk));
	}
}

/* One packet towards the fractional window. On its way down snd_cwnd takes ssthresh along. */
static void step(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 goal = whole_window(sk);
	u32 cwnd = tcp_snd_cwnd(tp);

	if (cwnd > goal) {
		tcp_snd_cwnd_set(tp, cwnd - 1);
		tp->snd_ssthresh = cwnd - 1;
		cwnd_changed(sk);
	} else if (cwnd < goal) {
		tcp_snd_cwnd_set(tp, cwnd + 1);
		cwnd_changed(sk);
	}
}

static void update_cwnd(struct sock *sk, const struct rate_sample *rs)
{
	struct prague *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	s64 acked = rs->acked_sacked;

	if (ca->ece) {
		if (!ca->saw_ce && !ca->alpha_from_1)
			ca->frac_cwnd = (ca->frac_cwnd + 1) >> 1;
		ca->saw_ce = 1;
		acked -= ca->ece;
	}
	if (acked > 0 && !ca->in_loss && tcp_is_cwnd_limited(sk)) {
		if (tcp_in_slow_start(tp)) {
			acked = tcp_slow_start(tp, acked);
			ca->frac_cwnd = (u64)tcp_snd_cwnd(tp) << UNIT_SHIFT;
			if (!acked) {
				cwnd_changed(sk);
				return;
			}
		}
		grow(sk, acked);
	}
	step(sk);
}

/* Two packets per virtual RTT at least: below that they shrink. */
static void update_mtu(struct sock *sk)
{
	struct prague *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 before = prague_mtu(sk);
	u32 headers = before - tp->mss_cache;
	u64 rtt = virtual_rtt(sk);
	u64 bytes;
	u32 mtu, mss, goal;

	if (by_rate(sk)) {
		bytes = mul_u64_u64_shr(ca->rate, rtt, SECOND_SHIFT);
	} else {
		u64 window = ca->frac_cwnd;

		if (tp->srtt_us && tp->srtt_us < target_rtt())
			window = div64_u64(window * target_rtt(), tp->srtt_us);
		bytes = mul_u64_u64_shr(window, before, UNIT_SHIFT);
	}
	mtu = max_t(u64, min_t(u64, ca->mtu, DIV_U64_ROUND_UP(bytes, PRAGUE_MIN_CWND)), PRAGUE_MIN_MSS + headers);
	/* As the core does when the MTU of a path changes. */
	mss = max_t(u32, tcp_bound_to_half_wnd(tp, mtu - headers), READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_min_snd_mss));
	mtu = mss + headers;
	if (mtu == before)
		return;
	/* The MTU of the path stays noted in icsk_pmtu_cookie, so that the core does not compute this anew. */
	tp->mss_cache = mss;
	ca->mss = mss;
	ca->frac_cwnd = div64_u64(ca->frac_cwnd * before, mtu);
	goal = whole_window(sk);
	if (tcp_snd_cwnd(tp) != goal) {
		tcp_snd_cwnd_set(tp, goal);
		tp->snd_ssthresh = min_t(u64, div64_u64((u64)tp->snd_ssthresh * before, mtu), U32_MAX);
		cwnd_changed(sk);
	}
}

static void update_alpha(struct sock *sk)
{
	struct prague *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (before(tp->snd_una, ca->next_seq) || !target_passed(sk, ca->alpha_stamp))
		return;
	if (ca->saw_ce) {
		u64 marked = tp->delivered_ce - ca->old_delivered_ce;
		u32 delivered = max(1U, tp->delivered - ca->old_delivered);

		marked = div64_u64(marked << ALPHA_BITS, delivered);
		ca->alpha = min(ca->alpha - (ca->alpha >> PRAGUE_GAIN_SHIFT) + marked, MAX_ALPHA);
		ca->alpha_stamp = tp->tcp_mstamp;
		if (active(sk) && !ca->in_loss)
			update_mtu(sk);
	}
	ca->hsrtt += tp->srtt_us - (ca->hsrtt >> HSRTT_SHIFT);
	new_round(sk);
}

/* The clock of the core charges payload, so that a flow goes a little faster than this says. */
static void update_pacing(struct sock *sk)
{
	struct prague *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 most = READ_ONCE(prague_max_tso_segs);
	u64 rate, burst;

	if (by_rate(sk)) {
		u64 offset = mul_u64_u64_shr(PACE_OFFSET, ca->rate, PACE_SHIFT);

		/* Faster in the first half of a virtual RTT, slower in the second. */
		rate = virtual_rtt(sk) >> 4 <= tp->tcp_mstamp - ca->alpha_stamp ? ca->rate - offset : ca->rate + offset;
	} else {
		u64 packets = max_t(u64, ca->frac_cwnd >> UNIT_SHIFT, tcp_packets_in_flight(tp));

		rate = max(packet_rate(sk) * packets, MIN_RATE);
		ca->rate = rate;
	}
	if (tcp_snd_cwnd(tp) < tp->snd_ssthresh / 2)
		rate <<= 1;
	rate = min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate));
	burst = max_t(u64, 1, div64_u64(rate, prague_mtu(sk)) >> READ_ONCE(sk->sk_pacing_shift));
	prague_set_burst(sk, &ca->burst, most ? min(burst, most) : burst);
	WRITE_ONCE(sk->sk_pacing_rate, rate);
}

static void update_mode(struct sock *sk)
{
	struct prague *ca = prague_ca(sk);
	u64 window = (u64)tcp_snd_cwnd(tcp_sk(sk)) * prague_mtu(sk);

	if (!ca->switching)
		return;
	ca->rate_mode = ca->saw_ce && window <= (u64)READ_ONCE(prague_cwnd_transit) * MTU_SYS;
	if (ca->rate_mode)
		ca->frac_cwnd = rate_to_window(sk, ca->rate);
	else
		ca->rate = window_to_rate(sk);
}

/* The core calls this for the SYN/ACK too, before init: a pace or a bound of bursts from then would outlast the choice of form. */
static void prague_cong_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	if (!inet_csk(sk)->icsk_ca_initialized)
		return;
	update_cwnd(sk, rs);
	update_alpha(sk);
	update_pacing(sk);
	update_mode(sk);
}

/* AccECN of this ACK is decoded by now. Marks of an ACK that never reaches cong_control count for alpha alone. */
static void prague_in_ack_event(struct sock *sk, u32 flags)
{
	struct prague *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 delivered_ce = tp->delivered_ce;

	ca->ece = min_t(u32, delivered_ce - ca->seen_ce, U16_MAX);
	ca->seen_ce = delivered_ce;
	/*
	 * When the peer's window is larger than ever before the core computes the size of packets anew, just before this
	 * (tcp_ack_update_window), and forgets that it was made smaller. Window and ssthresh would be scaled once more.
	 */
	if (ca->mss)
		tp->mss_cache = min_t(u32, tp->mss_cache, ca->mss);
}

static void enter_cwr(struct sock *sk)
{
	struct prague *ca = prague_ca(sk);
	u64 alpha = ca->alpha >> PRAGUE_GAIN_SHIFT;

	if (!target_passed(sk, ca->cwr_stamp))
		return;
	ca->cwr_stamp = tcp_sk(sk)->tcp_mstamp;
	if (by_rate(sk)) {
		ca->rate = max(ca->rate - mul_u64_u64_shr(ca->rate, alpha, ALPHA_BITS + 1), MIN_RATE);
		ca->frac_cwnd = rate_to_window(sk, ca->rate);
	} else {
		ca->frac_cwnd -= (alpha * ca->frac_cwnd + (1ULL << ALPHA_BITS)) >> (ALPHA_BITS + 1);
		ca->rate = window_to_rate(sk);
	}
}

static void enter_loss(struct sock *sk)
{
	struct prague *ca = prague_ca(sk);

	ca->loss_cwnd = tcp_snd_cwnd(tcp_sk(sk));
	ca->loss_rate = ca->rate;
	if (by_rate(sk)) {
		ca->rate -= ca->rate >> 1;
		ca->frac_cwnd = rate_to_window(sk, ca->rate);
	} else {
		ca->frac_cwnd -= ca->frac_cwnd >> 1;
		ca->rate = window_to_rate(sk);
	}
	ca->in_loss = 1;
}

static void prague_set_state(struct sock *sk, u8 new_state)
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

static void prague_cwnd_event(struct sock *sk, enum tcp_ca_event ev)
{
	if (ev == CA_EVENT_LOSS)
		enter_loss(sk);
}

/* Reductions wait in the fractional window. */
static u32 prague_ssthresh(struct sock *sk)
{
	return tcp_sk(sk)->snd_ssthresh;
}

static u32 prague_undo_cwnd(struct sock *sk)
{
	struct prague *ca = prague_ca(sk);

	ca->in_loss = 0;
	ca->rate = max(ca->rate, ca->loss_rate);
	ca->frac_cwnd = rate_to_window(sk, ca->rate);
	return max(ca->loss_cwnd, tcp_snd_cwnd(tcp_sk(sk)));
}

/* The core sends at least so many at once, and prague_set_burst keeps it from more. */
static u32 prague_min_tso_segs(struct sock *sk)
{
	return prague_ca(sk)->burst.packets;
}

static void prague_init(struct sock *sk)
{
	struct prague *ca = prague_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	enum prague_form form = READ_ONCE(prague_form);
	bool connected = sk->sk_state != TCP_LISTEN && sk->sk_state != TCP_CLOSE;

	BUILD_BUG_ON(sizeof(struct prague) > ICSK_CA_PRIV_SIZE);
	if (connected && !tcp_ecn_mode_any(tp)) {
		prague_become_reno(sk);
		return;
	}
	if (form >= PRAGUE_2019_11) {
		WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, &prague_2019_ops);
		prague_2019_init(sk, form);
		return;
	}
	if (form != PRAGUE_0_7) {
		WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, &prague_2020_ops);
		prague_2020_init(sk, form);
		return;
	}
	memset(ca, 0, sizeof(*ca));
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	ca->pacing_shift = sk->sk_pacing_shift;
	WRITE_ONCE(sk->sk_pacing_shift, READ_ONCE(prague_burst_shift));
	ca->seen_ce = tp->delivered_ce;
	ca->alpha_stamp = tp->tcp_mstamp;
	ca->alpha_from_1 = READ_ONCE(prague_alpha_mode);
	ca->alpha = ca->alpha_from_1 ? MAX_ALPHA : 0;
	ca->frac_cwnd = (u64)tcp_snd_cwnd(tp) << UNIT_SHIFT;
	update_pacing(sk);
	ca->saw_ce = !!tp->delivered_ce;
	ca->mtu = prague_mtu(sk) ?: MTU_SYS;
	ca->hsrtt = (tp->srtt_us ?: 8ULL) << HSRTT_SHIFT;
	ca->rate_mode = READ_ONCE(prague_cwnd_mode) & 1;
	ca->switching = READ_ONCE(prague_cwnd_mode) >> 1;
	new_round(sk);
}

static void prague_release(struct sock *sk)
{
	const struct prague *ca = prague_ca(sk);

	prague_release_burst(sk, &ca->burst);
	prague_withdraw(sk, ca->pacing_shift);
}

static size_t prague_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct prague *ca = prague_ca(sk);

	return prague_info(sk, ext, attr, info, ca->saw_ce, ca->alpha >> (ALPHA_BITS + PRAGUE_GAIN_SHIFT - 10),
			   ca->old_delivered, ca->old_delivered_ce);
}

struct tcp_congestion_ops prague_ops __read_mostly = {
	.init		= prague_init,
	.release	= prague_release,
	.cong_control	= prague_cong_control,
	.in_ack_event	= prague_in_ack_event,
	.set_state	= prague_set_state,
	.cwnd_event	= prague_cwnd_event,
	.ssthresh	= prague_ssthresh,
	.undo_cwnd	= prague_undo_cwnd,
	.min_tso_segs	= prague_min_tso_segs,
	.get_info	= prague_get_info,
	.flags		= TCP_CONG_NEEDS_ECN | TCP_CONG_NEEDS_ACCECN | TCP_CONG_ECT_1_NEGOTIATION |
			  TCP_CONG_NO_FALLBACK_RFC3168 | TCP_CONG_NON_RESTRICTED,
	.owner		= THIS_MODULE,
	.name		= "prague",
};

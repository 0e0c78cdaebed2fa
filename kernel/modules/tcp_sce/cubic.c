// SPDX-License-Identifier: GPL-2.0
/*
 * cubic-sce: CUBIC with the HyStart of Linux 5.4 whose curve is flat at the last mark, and whose window a mark takes
 * sqrt(W) / W packets from for each packet that carried one.
 *
 * C is 0.4 packets per cubic second (410/1024), beta 717/1024. Time on the curve is in 1/1024 s.
 */
#include <linux/module.h>
#include <linux/overflow.h>

#include "sce.h"

#define HZ_SHIFT		10
/* What C t^3 is counted in. */
#define CUBE_SHIFT		(10 + 3 * HZ_SHIFT)
#define RTT_SCALE		410U
#define BETA			717U
#define BETA_SCALE		1024U
/* (1 + beta) / (1 - beta) / 3 in eighths: windows of ACKs per packet of the AIMD flow. */
#define AIMD_SCALE		(8 * (BETA_SCALE + BETA) / 3 / (BETA_SCALE - BETA))

#define HYSTART_TRAIN		1
#define HYSTART_DELAY		2
#define HYSTART_LOW_WINDOW	16
#define HYSTART_ACK_DELTA	2	/* ms */
#define HYSTART_MIN_SAMPLES	8

static struct sce_cubic *cubic_ca(struct sock *sk)
{
	BUILD_BUG_ON(sizeof(struct sce_cubic) > ICSK_CA_PRIV_SIZE);
	return inet_csk_ca(sk);
}

static u32 plus(u32 a, u32 b)
{
	u32 sum;

	return check_add_overflow(a, b, &sum) ? U32_MAX : sum;
}

static u32 minus(u32 a, u32 b)
{
	return a > b ? a - b : 0;
}

static u64 times(u64 a, u64 b)
{
	u64 product;

	return check_mul_overflow(a, b, &product) ? U64_MAX : product;
}

/* C t^3 in whole packets. */
static u32 cube(u64 t)
{
	return times(times(times(RTT_SCALE, t), t), t) >> CUBE_SHIFT;
}

/* Truncated, by one binary digit of the root at a time. */
static u32 cube_root(u64 x)
{
	u64 root = 0;
	int shift;

	for (shift = 63; shift >= 0; shift -= 3) {
		u64 step;

		root *= 2;
		/* (root + 1)^3 - root^3 */
		step = 3 * root * (root + 1) + 1;
		if (x >> shift >= step) {
			x -= step << shift;
			root++;
		}
	}
	return root;
}

static u32 clock_ms(const struct tcp_sock *tp)
{
	return div_u64(tp->tcp_mstamp, 1000);
}

/* Time on the curve. */
static u64 curve_time(u64 jiffies_passed)
{
	return div_u64(jiffies_passed << HZ_SHIFT, HZ);
}

static void hystart_round(struct sce_cubic *ca, const struct tcp_sock *tp)
{
	ca->round_start = clock_ms(tp);
	ca->last_ack = ca->round_start;
	ca->end_seq = tp->snd_nxt;
	ca->curr_rtt = U32_MAX;
	ca->samples = 0;
}

static void hystart_restart(struct sce_cubic *ca, const struct tcp_sock *tp)
{
	ca->found = 0;
	hystart_round(ca, tp);
}

static void hystart_sample(struct sce_cubic *ca, struct tcp_sock *tp, u32 delay)
{
	u32 now = clock_ms(tp);

	if (ca->found || tcp_snd_cwnd(tp) < HYSTART_LOW_WINDOW)
		return;
	if (now - ca->last_ack <= HYSTART_ACK_DELTA) {
		ca->last_ack = now;
		/* Half of the least RTT, in milliseconds. */
		if (now - ca->round_start > ca->delay_min >> 4)
			ca->found |= HYSTART_TRAIN;
	}
	if (ca->samples < HYSTART_MIN_SAMPLES) {
		ca->curr_rtt = min(ca->curr_rtt, delay);
		ca->samples++;
	} else if (ca->curr_rtt > ca->delay_min + clamp(ca->delay_min >> 3, 4U << 3, 16U << 3)) {
		ca->found |= HYSTART_DELAY;
	}
	if (ca->found)
		tp->snd_ssthresh = tcp_snd_cwnd(tp);
}

static void begin_epoch(struct sce_cubic *ca, u32 cwnd, u32 acked_bytes)
{
	u64 below = minus(ca->last_max_cwnd, cwnd);

	ca->in_epoch = 1;
	ca->epoch_start = tcp_jiffies32;
	ca->ack_cnt = acked_bytes;
	ca->tcp_cwnd = cwnd;
	ca->k = cube_root(times(below, (1ULL << CUBE_SHIFT) / RTT_SCALE));
	ca->origin_point = max(ca->last_max_cwnd, cwnd);
}

/* Where the curve will be one least RTT from now. */
static u32 target(const struct sce_cubic *ca)
{
	u64 ahead = DIV_ROUND_UP((u64)(ca->delay_min >> 3) * HZ, 1000);
	u64 t = curve_time(tcp_jiffies32 - ca->epoch_start + ahead);

	if (t < ca->k)
		return minus(ca->origin_point, cube(ca->k - t));
	return plus(ca->origin_point, cube(t - ca->k));
}

static void follow_aimd(const struct sock *sk, struct sce_cubic *ca, u32 cwnd)
{
	s64 per_packet = max(((u64)cwnd * AIMD_SCALE * sce_segment(sk, &ca->fb)) >> 3, 1ULL);

	if (ca->ack_cnt > per_packet) {
		u64 packets = div64_u64(ca->ack_cnt - 1, per_packet);

		ca->ack_cnt -= packets * per_packet;
		ca->tcp_cwnd = plus(ca->tcp_cwnd, min_t(u64, packets, U32_MAX));
	}
	if (ca->tcp_cwnd > cwnd)
		ca->cnt = min(ca->cnt, cwnd / (ca->tcp_cwnd - cwnd));
}

/* The curve moves once per jiffy, and the AIMD flow with every ACK. */
static void update(const struct sock *sk, struct sce_cubic *ca, u32 acked)
{
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));
	u32 bytes = acked * sce_segment(sk, &ca->fb);

	ca->ack_cnt += bytes;
	if (ca->last_cwnd == cwnd && tcp_jiffies32 - ca->last_time <= HZ / 32)
		return;
	if (!ca->in_epoch || tcp_jiffies32 != ca->last_time) {
		u32 wanted;

		ca->last_cwnd = cwnd;
		ca->last_time = tcp_jiffies32;
		if (!ca->in_epoch)
			begin_epoch(ca, cwnd, bytes);
		wanted = target(ca);
		ca->cnt = wanted > cwnd ? cwnd / (wanted - cwnd) : min_t(u64, 100ULL * cwnd, U32_MAX);
		/* Before the first loss nobody knows the origin. */
		if (!ca->last_max_cwnd)
			ca->cnt = min(ca->cnt, 20U);
	}
	follow_aimd(sk, ca, cwnd);
	ca->cnt = max(ca->cnt, 2U);
}

/* Moves the curve so that it is flat now. */
static void flatten(struct sce_cubic *ca)
{
	u32 passed = tcp_jiffies32 - ca->epoch_start;
	u64 t = curve_time(passed);

	if (t < ca->k) {
		/* What SCE's own arithmetic comes to: from here on growth is at its greatest. */
		ca->origin_point = ca->literal ? U32_MAX : minus(ca->origin_point, cube(ca->k - t));
		ca->epoch_start = tcp_jiffies32;
		ca->k = 0;
	} else {
		u32 to_origin = min_t(u64, ((u64)ca->k * HZ) >> HZ_SHIFT, passed);

		ca->epoch_start += to_origin;
		ca->k = t - ca->k;
		ca->origin_point = plus(ca->origin_point, cube(ca->k));
	}
}

static void on_marks(struct sock *sk, struct sce_cubic *ca, u32 marked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	s64 segment = sce_segment(sk, &ca->fb);

	if (ca->in_epoch)
		flatten(ca);
	ca->ack_cnt -= (s64)marked * int_sqrt(tcp_snd_cwnd(tp));
	while (ca->ack_cnt <= -segment * tcp_snd_cwnd(tp)) {
		ca->ack_cnt += segment * tcp_snd_cwnd(tp);
		if (tcp_snd_cwnd(tp) > SCE_MIN_CWND) {
			tcp_snd_cwnd_set(tp, tcp_snd_cwnd(tp) - 1);
			ca->origin_point = minus(ca->origin_point, 1);
		}
	}
	tp->snd_ssthresh = max(tcp_snd_cwnd(tp) / 2, SCE_MIN_CWND);
	ca->recent_sce = tcp_snd_cwnd(tp) + 1;
}

static void cubic_sce_in_ack_event(struct sock *sk, u32 flags)
{
	struct sce_cubic *ca = cubic_ca(sk);
	struct sce_acked acked = sce_feedback_take(sk, &ca->fb, flags);

	if (acked.marked)
		on_marks(sk, ca, acked.marked);
	if (ca->recent_sce)
		ca->recent_sce--;
}

static void cubic_sce_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct sce_cubic *ca = cubic_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		if (after(tp->snd_una, ca->end_seq))
			hystart_round(ca, tp);
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	update(sk, ca, acked);
	tcp_cong_avoid_ai(tp, ca->cnt, acked);
}

static void cubic_sce_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct sce_cubic *ca = cubic_ca(sk);
	u32 delay;

	if (sample->rtt_us < 0)
		return;
	/* The RTTs right after a reduction still have the queue in them that it drains. */
	if (ca->in_epoch && tcp_jiffies32 - ca->epoch_start < HZ)
		return;
	delay = max_t(u32, div_u64(8ULL * sample->rtt_us, 1000), 1);
	if (!ca->delay_min || ca->delay_min > delay)
		ca->delay_min = delay;
	if (tcp_in_slow_start(tcp_sk(sk)))
		hystart_sample(ca, tcp_sk(sk), delay);
}

static u32 cubic_sce_ssthresh(struct sock *sk)
{
	struct sce_cubic *ca = cubic_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));

	ca->in_epoch = 0;
	/* A window that fell short of the last one gives way. */
	if (cwnd < ca->last_max_cwnd)
		ca->last_max_cwnd = (u64)cwnd * (BETA_SCALE + BETA) / (2 * BETA_SCALE);
	else
		ca->last_max_cwnd = cwnd;
	if (ca->recent_sce)
		return max(cwnd - DIV_ROUND_UP(cwnd, 8), SCE_MIN_CWND);
	return max_t(u32, (u64)cwnd * BETA / BETA_SCALE, SCE_MIN_CWND);
}

/* A timeout forgets the curve. */
static void cubic_sce_set_state(struct sock *sk, u8 new_state)
{
	struct sce_cubic *ca = cubic_ca(sk);

	if (new_state != TCP_CA_Loss)
		return;
	ca->cnt = 0;
	ca->last_max_cwnd = 0;
	ca->last_cwnd = 0;
	ca->last_time = 0;
	ca->origin_point = 0;
	ca->k = 0;
	ca->delay_min = 0;
	ca->in_epoch = 0;
	ca->ack_cnt = 0;
	ca->tcp_cwnd = 0;
	hystart_restart(ca, tcp_sk(sk));
}

/* Idle time is no time to grow in. */
static void cubic_sce_cwnd_event_tx_start(struct sock *sk)
{
	struct sce_cubic *ca = cubic_ca(sk);
	s32 idle = tcp_jiffies32 - tcp_sk(sk)->lsndtime;

	if (!ca->in_epoch || idle <= 0)
		return;
	ca->epoch_start += min_t(u32, idle, tcp_jiffies32 - ca->epoch_start);
}

static void cubic_sce_init(struct sock *sk)
{
	struct sce_cubic *ca = cubic_ca(sk);

	memset(ca, 0, sizeof(*ca));
	sce_feedback_init(sk, &ca->fb);
	ca->literal = READ_ONCE(cubic_origin);
	hystart_restart(ca, tcp_sk(sk));
}

static void cubic_sce_release(struct sock *sk)
{
	sce_feedback_release(sk, &cubic_ca(sk)->fb);
}

struct tcp_congestion_ops cubic_sce_ops __read_mostly = {
	.init			= cubic_sce_init,
	.release		= cubic_sce_release,
	.cong_avoid		= cubic_sce_cong_avoid,
	.in_ack_event		= cubic_sce_in_ack_event,
	.pkts_acked		= cubic_sce_pkts_acked,
	.set_state		= cubic_sce_set_state,
	.cwnd_event_tx_start	= cubic_sce_cwnd_event_tx_start,
	.ssthresh		= cubic_sce_ssthresh,
	.undo_cwnd		= tcp_reno_undo_cwnd,
	.flags			= TCP_CONG_NEEDS_ACCECN | TCP_CONG_NON_RESTRICTED,
	.owner			= THIS_MODULE,
	.name			= "cubic-sce",
};

// SPDX-License-Identifier: GPL-2.0
/*
 * reno-sce and dctcp-sce: acknowledged bytes are earned, or taken if they were marked, and a window's worth of them
 * is a packet.
 *
 * Per round trip with a fraction f of marked bytes a window W changes by (1 - f) - f * sqrt(W) with reno-sce, where
 * the form of 2019 takes half as much, and by (1 - f) - f * W / 2 with dctcp-sce.
 */
#include <linux/module.h>

#include "sce.h"

static struct sce_window *window_ca(struct sock *sk)
{
	BUILD_BUG_ON(sizeof(struct sce_window) > ICSK_CA_PRIV_SIZE);
	return inet_csk_ca(sk);
}

/* The window took a step of its own: what slow start and reductions do to it the root learns from later steps. */
static void follow(struct sce_window *ca, u32 cwnd)
{
	u32 exact = int_sqrt(cwnd);

	if (ca->root < exact)
		ca->root++;
	else if (ca->root > exact)
		ca->root--;
}

static void step(struct sock *sk, struct sce_window *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	s64 segment = sce_segment(sk, &ca->fb);

	while (ca->cnt <= -segment * tcp_snd_cwnd(tp)) {
		ca->cnt += segment * tcp_snd_cwnd(tp);
		if (tcp_snd_cwnd(tp) > SCE_MIN_CWND) {
			tcp_snd_cwnd_set(tp, tcp_snd_cwnd(tp) - 1);
			follow(ca, tcp_snd_cwnd(tp));
		}
	}
	while (ca->cnt >= segment * tcp_snd_cwnd(tp)) {
		ca->cnt -= segment * tcp_snd_cwnd(tp);
		tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp) + 1, tp->snd_cwnd_clamp));
		follow(ca, tcp_snd_cwnd(tp));
	}
}

static u32 half_at_least(u32 cwnd)
{
	return max(cwnd / 2, SCE_MIN_CWND);
}

/* A mark that is not for CE as well takes `cut` of the bytes. */
static void on_marks(struct sock *sk, struct sce_window *ca, s64 cut)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 half;

	ca->cnt -= cut;
	ca->loss_cwnd = tcp_snd_cwnd(tp);
	half = half_at_least(ca->loss_cwnd);
	tp->snd_ssthresh = ca->of_2019 ? half : max(tp->snd_ssthresh, half);
	ca->recent_sce = tcp_snd_cwnd(tp) + 1;
}

/* reno-sce */
static u64 root_cut(const struct sce_window *ca, u32 marked, u32 cwnd)
{
	u64 cut = (u64)marked * ca->root;

	return ca->of_2019 ? cut / 2 : cut;
}

/* dctcp-sce */
static u64 half_cut(const struct sce_window *ca, u32 marked, u32 cwnd)
{
	return (u64)marked * cwnd / 2;
}

static void on_ack(struct sock *sk, u32 flags, u64 (*cut)(const struct sce_window *ca, u32 marked, u32 cwnd))
{
	struct sce_window *ca = window_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct sce_acked acked = sce_feedback_take(sk, &ca->fb, flags);

	/* An AccECN sender sees CE once. It answers for a round trip, as if the receiver repeated it until CWR. */
	ca->ece = (flags & CA_ACK_ECE) || inet_csk(sk)->icsk_ca_state == TCP_CA_CWR;
	if (ca->ece)
		acked.marked = 0;
	if (acked.marked)
		on_marks(sk, ca, cut(ca, acked.marked, tcp_snd_cwnd(tp)));
	if (acked.bytes > acked.marked && !tcp_in_slow_start(tp) && tcp_is_cwnd_limited(sk)) {
		ca->cnt += acked.bytes - acked.marked;
		ca->loss_cwnd = max(ca->loss_cwnd, tcp_snd_cwnd(tp));
	}
	if (acked.bytes)
		step(sk, ca);
	if (ca->recent_sce)
		ca->recent_sce--;
}

static void reno_sce_in_ack_event(struct sock *sk, u32 flags)
{
	on_ack(sk, flags, root_cut);
}

static void dctcp_sce_in_ack_event(struct sock *sk, u32 flags)
{
	on_ack(sk, flags, half_cut);
}

/* Of what slow start leaves over a `share`-th is earned. */
static void slow_start(struct sock *sk, u32 acked, u32 share)
{
	struct sce_window *ca = window_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_in_slow_start(tp) || !tcp_is_cwnd_limited(sk))
		return;
	acked = tcp_slow_start(tp, acked);
	ca->cnt += div_u64((u64)acked * sce_segment(sk, &ca->fb), share);
}

static void reno_sce_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	slow_start(sk, acked, 1);
}

static void dctcp_sce_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	slow_start(sk, acked, 5);
}

/* What CE leaves: three quarters of the window, or seven eighths if a mark was recent. */
static u32 after_ce(const struct sce_window *ca, u32 cwnd)
{
	u32 part = ca->recent_sce ? cwnd / 8 : cwnd / 4;

	part = max(part, 1U);
	return max(cwnd - min(part, cwnd), min(SCE_MIN_CWND, cwnd));
}

/* Where PRR leads. It does not lower ssthresh, but for CE with pro_rata: CE's part comes when PRR has done. */
static u32 window_ssthresh(struct sock *sk)
{
	struct sce_window *ca = window_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (ca->ece && ca->pro_rata)
		return max(after_ce(ca, tcp_snd_cwnd(tp)), SCE_MIN_CWND);
	return max(tp->snd_ssthresh, half_at_least(ca->loss_cwnd));
}

static void window_cwnd_event(struct sock *sk, enum tcp_ca_event ev)
{
	struct sce_window *ca = window_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tcp_snd_cwnd(tp);

	if (ev != CA_EVENT_COMPLETE_CWR && ev != CA_EVENT_LOSS)
		return;
	if (ev == CA_EVENT_COMPLETE_CWR) {
		if (ca->pro_rata)
			cwnd = tp->prior_cwnd;
		else
			tcp_snd_cwnd_set(tp, after_ce(ca, cwnd));
	}
	ca->loss_cwnd = cwnd;
	tp->snd_ssthresh = half_at_least(cwnd);
	ca->cnt = 0;
}

static struct sce_window *window_init(struct sock *sk)
{
	struct sce_window *ca = window_ca(sk);

	memset(ca, 0, sizeof(*ca));
	sce_feedback_init(sk, &ca->fb);
	ca->root = 1;
	return ca;
}

static void reno_sce_init(struct sock *sk)
{
	struct sce_window *ca = window_init(sk);

	ca->of_2019 = READ_ONCE(reno_form);
	ca->pro_rata = ca->of_2019;
}

static void dctcp_sce_init(struct sock *sk)
{
	window_init(sk)->of_2019 = READ_ONCE(dctcp_form);
}

static void window_release(struct sock *sk)
{
	sce_feedback_release(sk, &window_ca(sk)->fb);
}

struct tcp_congestion_ops reno_sce_ops __read_mostly = {
	.init		= reno_sce_init,
	.release	= window_release,
	.cong_avoid	= reno_sce_cong_avoid,
	.in_ack_event	= reno_sce_in_ack_event,
	.cwnd_event	= window_cwnd_event,
	.ssthresh	= window_ssthresh,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.flags		= TCP_CONG_NEEDS_ACCECN | TCP_CONG_NON_RESTRICTED,
	.owner		= THIS_MODULE,
	.name		= "reno-sce",
};

struct tcp_congestion_ops dctcp_sce_ops __read_mostly = {
	.init		= dctcp_sce_init,
	.release	= window_release,
	.cong_avoid	= dctcp_sce_cong_avoid,
	.in_ack_event	= dctcp_sce_in_ack_event,
	.cwnd_event	= window_cwnd_event,
	.ssthresh	= window_ssthresh,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.flags		= TCP_CONG_NEEDS_ACCECN | TCP_CONG_NON_RESTRICTED,
	.owner		= THIS_MODULE,
	.name		= "dctcp-sce",
};

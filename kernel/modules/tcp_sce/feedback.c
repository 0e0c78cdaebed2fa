// SPDX-License-Identifier: GPL-2.0
/*
 * SCE's marks from AccECN. A queue that marks makes ECT(1) of ECT(0). The receiver counts the payload that came with
 * each codepoint, and this sender sends ECT(0) alone: so its counter of ECT(1) bytes is that of marked bytes.
 */
#include "sce.h"

void sce_feedback_init(struct sock *sk, struct sce_feedback *fb)
{
	struct tcp_sock *tp = tcp_sk(sk);

	fb->prior_una = tp->snd_una;
	fb->prior_ect1 = tp->delivered_ecn_bytes[INET_ECN_ECT_1 - 1];
	fb->whole_acks = READ_ONCE(sce_feedback);
	fb->rcv_mss = READ_ONCE(sce_mss);
	if (READ_ONCE(sce_pacing))
		fb->paces = cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED) == SK_PACING_NONE;
}

void sce_feedback_release(struct sock *sk, const struct sce_feedback *fb)
{
	if (fb->paces)
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NEEDED, SK_PACING_NONE);
}

u32 sce_segment(const struct sock *sk, const struct sce_feedback *fb)
{
	u32 bytes = fb->rcv_mss ? inet_csk(sk)->icsk_ack.rcv_mss : tcp_sk(sk)->mss_cache;

	return max(bytes, 1U);
}

/* Whether the counters hold what the peer reported. */
static bool counters_seen(const struct tcp_sock *tp)
{
	return tcp_ecn_mode_accecn(tp) && tp->saw_accecn_opt == TCP_ACCECN_OPT_COUNTER_SEEN &&
	       !(tp->accecn_fail_mode & TCP_ACCECN_OPT_FAIL_RECV);
}

/*
 * Bytes that arrived out of order are reported before they are acknowledged, and where ACKs lack the option the core
 * believes and corrects later, so that a difference can be negative. What does not fit this ACK waits for the next.
 */
static u32 marked_of(struct sock *sk, struct sce_feedback *fb, u32 bytes)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 ect1 = tp->delivered_ecn_bytes[INET_ECN_ECT_1 - 1];
	u32 marked = 0;

	if (counters_seen(tp))
		fb->balance += (s32)(ect1 - fb->prior_ect1);
	fb->prior_ect1 = ect1;
	if (!bytes || fb->balance <= 0)
		return 0;
	if (fb->whole_acks) {
		fb->balance = 0;
		return bytes;
	}
	marked = min_t(s64, fb->balance, bytes);
	fb->balance -= marked;
	return marked;
}

struct sce_acked sce_feedback_take(struct sock *sk, struct sce_feedback *fb, u32 flags)
{
	struct sce_acked acked;
	u32 una = tcp_sk(sk)->snd_una;

	acked.bytes = una - fb->prior_una;
	fb->prior_una = una;
	/* A duplicate stands for a segment. */
	if (!acked.bytes && !(flags & CA_ACK_WIN_UPDATE))
		acked.bytes = sce_segment(sk, fb);
	acked.marked = marked_of(sk, fb, acked.bytes);
	return acked;
}

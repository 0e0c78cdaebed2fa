// SPDX-License-Identifier: GPL-2.0
/*
 * tcp_prague in user space: reads what happens to one connection, a line each, and prints the module's state after it.
 *
 *	open SRTT_US CWND SSTHRESH IN_FLIGHT FORM SCALING
 *							a connection with a full packet of 1500 bytes at 1 s; SCALING is
 *							prague_rtt_scaling, which begins after two rounds here
 *	ack PACKETS MARKED AFTER_US UNA NXT SRTT_US IN_FLIGHT LIMITED WIDER
 *							WIDER 1: the peer's window is larger than ever before, and data wait
 *	cut						what the core does before CWR and Recovery: asks for ssthresh
 *	state N						0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss
 *	rto						the event of a timeout; undo, which sets the window
 *	route SEGMENTS					the core may send so many packets at once there, as sk_setup_caps says
 *
 * A printed line: snd_cwnd ssthresh pacing_rate mss burst gso_max_segs, then of form 0 frac_cwnd rate alpha hsrtt ai round
 * mode in_loss, of forms 1 to 3 cwnd_cnt alpha in_loss ai score, and of forms 4 and 5 alpha snd_cwnd_cnt.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../tcp_prague/prague.c"

u32 tcp_jiffies32;
unsigned int prague_form;
struct tcp_congestion_ops prague_reno_ops;

u32 tcp_reno_ssthresh(struct sock *sk) { return sk->snd_ssthresh; }
u32 tcp_reno_undo_cwnd(struct sock *sk) { return max(sk->snd_cwnd, sk->prior_cwnd); }
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(sk))
		acked = tcp_slow_start(sk, acked);
	if (acked)
		tcp_cong_avoid_ai(sk, sk->snd_cwnd, acked);
}
void prague_withdraw(struct sock *sk, u8 pacing_shift) { (void)sk, (void)pacing_shift; }
void prague_become_reno(struct sock *sk) { sk->icsk_ca_ops = &prague_reno_ops; }
void scale_2020(unsigned int scaling);
void age_2020(struct sock *sk);
void print_2020(struct sock *sk);
void print_2019(struct sock *sk);

static void print(struct sock *sk)
{
	struct prague *ca = prague_ca(sk);

	printf("%u %u %lu %u %u %u", sk->snd_cwnd, sk->snd_ssthresh, sk->sk_pacing_rate, sk->mss_cache,
	       sk->icsk_ca_ops->min_tso_segs(sk), sk->sk_gso_max_segs);
	if (sk->icsk_ca_ops == &prague_2020_ops)
		print_2020(sk);
	else if (sk->icsk_ca_ops == &prague_2019_ops)
		print_2019(sk);
	else
		printf(" %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u %u\n", ca->frac_cwnd, ca->rate,
		       ca->alpha, ca->hsrtt, ca->ai, ca->round, ca->rate_mode, ca->in_loss);
}

static void opened(struct sock *sk, const char *words)
{
	unsigned int scaling;

	memset(sk, 0, sizeof(*sk));
	sk->icsk_ca_ops = &prague_ops;
	sk->sk_state = TCP_ESTABLISHED;
	sk->sk_max_pacing_rate = ~0UL;
	sk->sk_gso_max_segs = U16_MAX;
	sk->sk_gso_max_size = 65536;
	sk->net.ipv4.sysctl_tcp_tso_rtt_log = 9;
	sk->tcp_mstamp = 1000000;
	sk->mss_cache = 1448;
	sk->headers = 52;
	sk->snd_cwnd_clamp = U32_MAX;
	sk->net.ipv4.sysctl_tcp_min_snd_mss = 48;
	sk->ecn = sk->accecn = sk->is_cwnd_limited = sk->write_queue_empty = true;
	if (sscanf(words, "%u %u %u %u %u %u", &sk->srtt_us, &sk->snd_cwnd, &sk->snd_ssthresh, &sk->packets_out, &prague_form,
		   &scaling) != 6)
		exit(2);
	scale_2020(scaling);
	sk->min_rtt_us = sk->srtt_us;
	sk->srtt_us <<= 3;
	/* Of the SYN/ACK. */
	sk->icsk_ca_ops->cong_control(sk, 0, 0, &(struct rate_sample){ .acked_sacked = 1 });
	sk->icsk_ca_initialized = true;
	sk->icsk_ca_ops->init(sk);
	if (sk->icsk_ca_ops == &prague_2020_ops)
		age_2020(sk);
}

static void acked(struct sock *sk, const char *words)
{
	struct rate_sample sample;
	struct ack_sample newest;
	unsigned int marked, after, limited, wider;

	if (sscanf(words, "%d %u %u %u %u %u %u %u %u", &sample.acked_sacked, &marked, &after, &sk->snd_una, &sk->snd_nxt,
		   &sk->srtt_us, &sk->packets_out, &limited, &wider) != 9)
		exit(2);
	sk->min_rtt_us = sk->srtt_us;
	sk->srtt_us <<= 3;
	sk->is_cwnd_limited = limited;
	sk->write_queue_empty = !wider;
	newest = (struct ack_sample){ .pkts_acked = sample.acked_sacked, .rtt_us = sk->min_rtt_us };
	/* Of a path where the shortest RTT is half of the present one. */
	sk->min_rtt_us /= 2;
	sk->tcp_mstamp += after;
	sk->delivered += sample.acked_sacked;
	sk->delivered_ce += marked;
	/* As tcp_sync_mss of the core. */
	if (wider)
		sk->mss_cache = 1448;
	if (sk->icsk_ca_ops->pkts_acked)
		sk->icsk_ca_ops->pkts_acked(sk, &newest);
	sk->icsk_ca_ops->in_ack_event(sk, 0);
	sk->icsk_ca_ops->cong_control(sk, sk->snd_una, 0, &sample);
}

int main(void)
{
	static struct sock sk;
	char line[256];

	while (fgets(line, sizeof(line), stdin)) {
		if (!strncmp(line, "open ", 5)) {
			opened(&sk, line + 5);
		} else if (!strncmp(line, "ack ", 4)) {
			acked(&sk, line + 4);
		} else if (!strncmp(line, "state ", 6)) {
			u8 state = atoi(line + 6);

			sk.icsk_ca_ops->set_state(&sk, state);
			sk.icsk_ca_state = state;
		} else if (!strcmp(line, "cut\n")) {
			sk.prior_cwnd = sk.snd_cwnd;
			sk.snd_ssthresh = sk.icsk_ca_ops->ssthresh(&sk);
		} else if (!strcmp(line, "rto\n")) {
			if (sk.icsk_ca_ops->cwnd_event)
				sk.icsk_ca_ops->cwnd_event(&sk, CA_EVENT_LOSS);
		} else if (!strcmp(line, "undo\n")) {
			sk.snd_cwnd = sk.icsk_ca_ops->undo_cwnd(&sk);
		} else if (!strncmp(line, "route ", 6)) {
			sk.sk_gso_max_segs = atoi(line + 6);
		} else {
			return 2;
		}
		print(&sk);
	}
	return 0;
}

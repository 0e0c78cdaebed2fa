// SPDX-License-Identifier: GPL-2.0
/*
 * tcp_sce in user space: reads what happens to one connection, a line each, and prints the module's state after it.
 *
 *	open NAME CWND SSTHRESH FORM ORIGIN WHOLE_ACKS RCV_MSS
 *	ack UNA ECT1 WIN_UPDATE ECE LIMITED MAX_PACKETS_OUT AFTER_US PACKETS RTT_US NXT
 *					ECT1: how many more bytes arrived with it; PACKETS 0: no growth; RTT_US -1: no sample
 *	state N				0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss
 *	reduce				ssthresh; the window goes there
 *	end				of a reduction; rto, the event of a timeout
 *	start IDLE_US			first packet after so long
 *	counters SEEN FAIL		saw_accecn_opt and accecn_fail_mode
 *
 * A printed line: snd_cwnd ssthresh, then of reno-sce and dctcp-sce cnt root loss_cwnd recent_sce, and of cubic-sce ack_cnt
 * recent_sce cnt last_max_cwnd origin_point k delay_min tcp_cwnd.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../tcp_sce/sce.h"

u32 tcp_jiffies32;
unsigned int reno_form, dctcp_form, cubic_origin, sce_feedback, sce_mss, sce_pacing;

u32 tcp_reno_undo_cwnd(struct sock *sk) { return max(sk->snd_cwnd, sk->prior_cwnd); }

static void print(struct sock *sk)
{
	printf("%u %u", sk->snd_cwnd, sk->snd_ssthresh);
	if (sk->icsk_ca_ops == &cubic_sce_ops) {
		struct sce_cubic *ca = inet_csk_ca(sk);

		printf(" %" PRId64 " %u %u %u %u %u %u %u\n", ca->ack_cnt, ca->recent_sce, ca->cnt, ca->last_max_cwnd,
		       ca->origin_point, ca->k, ca->delay_min, ca->tcp_cwnd);
	} else {
		struct sce_window *ca = inet_csk_ca(sk);

		printf(" %" PRId64 " %u %u %u\n", ca->cnt, ca->root, ca->loss_cwnd, ca->recent_sce);
	}
}

static void pass(struct sock *sk, u32 us)
{
	sk->tcp_mstamp += us;
	tcp_jiffies32 = sk->tcp_mstamp / 1000;
}

static void opened(struct sock *sk, const char *words)
{
	char name[16];
	unsigned int form;

	memset(sk, 0, sizeof(*sk));
	sk->sk_state = TCP_ESTABLISHED;
	sk->mss_cache = 1448;
	sk->icsk_ack.rcv_mss = 536;
	sk->snd_cwnd_clamp = U32_MAX;
	sk->ecn = sk->accecn = true;
	sk->saw_accecn_opt = TCP_ACCECN_OPT_COUNTER_SEEN;
	/* The counter wraps on the way. */
	sk->delivered_ecn_bytes[INET_ECN_ECT_1 - 1] = U32_MAX - 20000;
	if (sscanf(words, "%15s %u %u %u %u %u %u", name, &sk->snd_cwnd, &sk->snd_ssthresh, &form, &cubic_origin,
		   &sce_feedback, &sce_mss) != 7)
		exit(2);
	reno_form = form;
	dctcp_form = form;
	sk->icsk_ca_ops = !strcmp(name, "cubic-sce") ? &cubic_sce_ops : !strcmp(name, "reno-sce") ? &reno_sce_ops : &dctcp_sce_ops;
	pass(sk, 1000000);
	sk->icsk_ca_ops->init(sk);
}

static void acked(struct sock *sk, const char *words)
{
	unsigned int update, ece, limited, after, packets;
	struct ack_sample sample = { 0 };
	u32 ect1;

	if (sscanf(words, "%u %u %u %u %u %u %u %u %d %u", &sk->snd_una, &ect1, &update, &ece, &limited,
		   &sk->max_packets_out, &after, &packets, &sample.rtt_us, &sk->snd_nxt) != 10)
		exit(2);
	pass(sk, after);
	sk->delivered_ecn_bytes[INET_ECN_ECT_1 - 1] += ect1;
	sk->is_cwnd_limited = limited;
	if (sk->icsk_ca_ops->pkts_acked)
		sk->icsk_ca_ops->pkts_acked(sk, &sample);
	sk->icsk_ca_ops->in_ack_event(sk, (update ? CA_ACK_WIN_UPDATE : 0) | (ece ? CA_ACK_ECE : 0));
	if (packets)
		sk->icsk_ca_ops->cong_avoid(sk, sk->snd_una, packets);
}

int main(void)
{
	static struct sock sk;
	unsigned int idle, seen, fail;
	char line[256];

	while (fgets(line, sizeof(line), stdin)) {
		if (!strncmp(line, "open ", 5)) {
			opened(&sk, line + 5);
		} else if (!strncmp(line, "ack ", 4)) {
			acked(&sk, line + 4);
		} else if (!strncmp(line, "state ", 6)) {
			u8 state = atoi(line + 6);

			if (sk.icsk_ca_ops->set_state)
				sk.icsk_ca_ops->set_state(&sk, state);
			sk.icsk_ca_state = state;
		} else if (!strcmp(line, "reduce\n")) {
			sk.prior_cwnd = sk.snd_cwnd;
			sk.snd_ssthresh = sk.icsk_ca_ops->ssthresh(&sk);
			sk.snd_cwnd = min(sk.snd_cwnd, sk.snd_ssthresh);
		} else if (!strcmp(line, "end\n") || !strcmp(line, "rto\n")) {
			if (sk.icsk_ca_ops->cwnd_event)
				sk.icsk_ca_ops->cwnd_event(&sk, line[0] == 'e' ? CA_EVENT_COMPLETE_CWR : CA_EVENT_LOSS);
		} else if (sscanf(line, "start %u", &idle) == 1) {
			sk.lsndtime = tcp_jiffies32;
			pass(&sk, idle);
			if (sk.icsk_ca_ops->cwnd_event_tx_start)
				sk.icsk_ca_ops->cwnd_event_tx_start(&sk);
		} else if (sscanf(line, "counters %u %u", &seen, &fail) == 2) {
			sk.saw_accecn_opt = seen;
			sk.accecn_fail_mode = fail;
		} else {
			return 2;
		}
		print(&sk);
	}
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of tcp_sce share. */
#ifndef BAKEOFF_SCE_H
#define BAKEOFF_SCE_H

#include <linux/math64.h>
#include <net/tcp.h>

/* Least window in packets. */
#define SCE_MIN_CWND	2U

/* The module's parameters. What a connection finds when it is made it keeps. */
extern unsigned int reno_form;
extern unsigned int dctcp_form;
extern unsigned int cubic_origin;
extern unsigned int sce_feedback;
extern unsigned int sce_mss;
extern unsigned int sce_pacing;

extern struct tcp_congestion_ops reno_sce_ops;
extern struct tcp_congestion_ops dctcp_sce_ops;
extern struct tcp_congestion_ops cubic_sce_ops;

/* What ACKs tell: bytes, and how many of them arrived with the mark. */
struct sce_feedback {
	s64 balance;		/* marked bytes that no ACK has accounted for; negative if too many were believed */
	u32 prior_una;
	u32 prior_ect1;		/* the counter of ECT(1) bytes at the ACK before */
	u8 whole_acks : 1,	/* an ACK that reports a mark is marked as a whole */
	   rcv_mss : 1,		/* a segment is rcv_mss, not mss_cache */
	   paces : 1;		/* pacing was asked for here */
};

/* Of one ACK: all bytes, and those with a mark. */
struct sce_acked {
	u32 bytes;
	u32 marked;
};

void sce_feedback_init(struct sock *sk, struct sce_feedback *fb);
void sce_feedback_release(struct sock *sk, const struct sce_feedback *fb);
/* To be called once for every ACK, in in_ack_event. */
struct sce_acked sce_feedback_take(struct sock *sk, struct sce_feedback *fb, u32 flags);
/* Bytes that a packet of the window stands for. */
u32 sce_segment(const struct sock *sk, const struct sce_feedback *fb);

/* reno-sce and dctcp-sce. */
struct sce_window {
	struct sce_feedback fb;
	s64 cnt;		/* bytes earned towards the next packet, or owed if negative */
	u32 root;		/* of the window: 1 at first, one nearer to it with each step */
	u32 loss_cwnd;		/* the window before reductions */
	u32 recent_sce;		/* ACKs for which a mark counts as recent */
	u8 of_2019 : 1,		/* a mark sets ssthresh to half of the window */
	   pro_rata : 1,	/* CE's part is taken while the window is reduced, not after that */
	   ece : 1;		/* the ACK being handled reports CE, or a reduction for CE is under way */
};

/* cubic-sce: the state of CUBIC and HyStart, and what marks need. */
struct sce_cubic {
	struct sce_feedback fb;
	s64 ack_cnt;		/* bytes acknowledged since the AIMD flow last grew */
	u32 recent_sce;
	u32 cnt;		/* packets acknowledged per packet of growth */
	u32 last_max_cwnd;
	u32 last_cwnd;
	u32 last_time;		/* jiffies of the last full computation */
	u32 origin_point;
	u32 k;			/* from the epoch's start to the origin, 1/1024 s */
	u32 epoch_start;	/* jiffies */
	u32 delay_min;		/* least RTT in eighths of a millisecond; 0: none yet */
	u32 tcp_cwnd;		/* the window of the AIMD flow */
	u32 round_start;	/* HyStart's round, and its last ACK in a train: milliseconds */
	u32 last_ack;
	u32 end_seq;
	u32 curr_rtt;		/* least RTT of the round, eighths of a millisecond */
	u8 samples;
	u8 found;		/* what HyStart found: HYSTART_TRAIN, HYSTART_DELAY */
	u8 in_epoch : 1,	/* epoch_start is set */
	   literal : 1;		/* a mark before K leaves the origin out of reach */
};

#endif

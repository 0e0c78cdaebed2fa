/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of sch_cake_sce share. Times are nanoseconds of CLOCK_MONOTONIC, rates bytes per second. */
#ifndef BAKEOFF_CAKE_H
#define BAKEOFF_CAKE_H

#include <linux/list.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#define CAKE_QUEUES	1024	/* of a tin */
#define CAKE_WAYS	8	/* queues among which a flow may find its place */

/* Time per byte is ns / 2^shift; a zero ns is unlimited. */
struct cake_pace {
	u64 ns;
	u32 shift;
};

struct cake_config {
	u64 rate;		/* 0: unlimited */
	u32 rtt_us;
	u32 target_us;
	u32 memlimit;		/* bytes; 0: the rate decides */
	u32 fwmark;		/* mask */
	u32 sce_thresh;		/* 0: no marks of SCE */
	s32 overhead;
	u32 mpu;
	u8 cells;		/* CAKE_ATM_* */
	u8 diffserv;		/* CAKE_DIFFSERV_* */
	u8 isolation;		/* CAKE_FLOW_* */
	u8 ack_filter;		/* CAKE_ACK_* */
	u8 replaces_header : 1,	/* the overhead counts from the network header on */
	   autorate : 1,
	   wash : 1,
	   ingress : 1,
	   split_gso : 1;
};

/* COBALT's parameters, which a tin has, and its state, which a queue has. */
struct cobalt_params {
	u64 interval;
	u64 target;
	u64 mtu_time;		/* how long a full frame takes */
};

struct cobalt {
	s64 drop_next;		/* the next signal is due; while there is none, until when the state is active */
	s64 blue_timer;
	u32 count;
	u32 isqrt;		/* 0 until the first signal, so that a fresh queue's first signal comes at once */
	u32 p_drop;
	bool dropping;
};

enum cobalt_verdict {
	COBALT_PASS,
	COBALT_MARKED,		/* the packet has CE now */
	COBALT_DROP,		/* COBALT asks for a drop, of a packet without ECN */
	COBALT_BLUE_DROP,
	COBALT_BLUE_DROP_MARKED,
};

/* What a queue counts as. */
enum cake_set {
	CAKE_IDLE,		/* on no list */
	CAKE_SPARSE,
	CAKE_SPARSE_WAIT,	/* emptied while sparse, but served with the bulk until its deficit is paid */
	CAKE_BULK,
	CAKE_DECAYING,		/* empty, with a COBALT that has not come to rest */
};

struct cake_queue {
	struct sk_buff *head;
	struct sk_buff *tail;
	struct list_head list;
	struct cobalt cobalt;
	s32 deficit;
	u32 tag;		/* whose it is */
	u16 src;		/* places in the host tables */
	u16 dst;
	u8 set;			/* enum cake_set */
};

struct cake_host {
	u32 tag;
	u16 bulk_flows;
};

struct cake_tin_stats {
	u64 bytes;
	u64 average_delay;
	u64 peak_delay;
	u64 base_delay;
	u32 packets;
	u32 drops;
	u32 marks;
	u32 sce_marks;
	u32 ack_drops;
	u32 way_hits;
	u32 way_misses;
	u32 way_collisions;
	u32 unresponsive_flows;
	u32 max_len;
};

struct cake_tin {
	struct cake_queue queues[CAKE_QUEUES];
	struct cake_host sources[CAKE_QUEUES];
	struct cake_host destinations[CAKE_QUEUES];
	struct list_head new_queues;
	struct list_head old_queues;
	struct list_head decaying_queues;
	struct cobalt_params params;
	struct cake_pace pace;
	u64 rate;
	s64 time_next;
	u32 flow_quantum;	/* bytes per round */
	s32 quantum;		/* of the tin, where the bandwidth is unlimited */
	s32 deficit;
	u32 backlog;
	u16 sparse_flows;
	u16 bulk_flows;
	u16 decaying_flows;
	struct cake_tin_stats stats;
};

/* The backlogs of all queues of all tins, and a heap over them, in order only while memory is short. */
struct cake_overflow {
	u32 backlog[TC_CAKE_MAX_TINS * CAKE_QUEUES];
	u16 heap[TC_CAKE_MAX_TINS * CAKE_QUEUES];
	u16 position[TC_CAKE_MAX_TINS * CAKE_QUEUES];
	u16 patience;		/* packets to be sent before the order is given up; 0: not in order */
};

/* Lengths of packets on the network layer and on the link. */
struct cake_lengths {
	u32 min_network;
	u32 max_network;
	u32 min_adjusted;
	u32 max_adjusted;
	u64 header;		/* moving average of the link's header, 2^-16 bytes */
};

struct cake_autorate {
	s64 last_packet;
	s64 window_begin;
	s64 last_change;
	u64 interval;
	u64 window_bytes;
	u64 peak;		/* the capacity estimate */
};

struct cake {
	struct cake_config config;
	struct cake_tin *tins;	/* TC_CAKE_MAX_TINS of them */
	struct cake_overflow *overflow;
	u8 tins_used;
	u8 turn;		/* among the tins, where the bandwidth is unlimited */
	struct cake_pace pace;
	s64 time_next;		/* when the shaper lets the next packet go, and when it does at the latest */
	s64 failsafe_next;
	u32 memory;		/* of the packets that stand here; 0 only if there is none */
	u32 memory_max;
	u32 memory_limit;
	struct cake_lengths lengths;
	struct cake_autorate autorate;
	struct qdisc_watchdog watchdog;
};

/* Of a packet that stands in a queue. */
struct cake_skb {
	s64 enqueued;
	u32 adjusted_len;
};

static inline struct cake_skb *cake_skb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct cake_skb));
	return (struct cake_skb *)qdisc_skb_cb(skb)->data;
}

/* The average with 1 / 2^shift of the sample in it. */
static inline u64 cake_average(u64 average, u64 sample, u32 shift)
{
	return average - (average >> shift) + (sample >> shift);
}

/* shaper.c */
struct cake_pace cake_pace(u64 rate);
s64 cake_pace_time(struct cake_pace pace, u32 bytes);
void cake_charge(struct cake *q, struct cake_tin *tin, u32 bytes, s64 now, bool dropped);
u32 cake_adjusted_len(struct cake *q, const struct sk_buff *skb);
void cake_lengths_forget(struct cake_lengths *lengths);

/* tins.c */
u8 cake_tins_configure(struct cake *q, u32 mtu);
u8 cake_tin_shown(u8 diffserv, u8 position);
u8 cake_tin_of(const struct cake *q, u32 handle, struct sk_buff *skb);

/* tin.c */
void cake_tin_clear(struct cake_tin *tin);
bool cake_tin_active(const struct cake_tin *tin);
struct cake_queue *cake_next_queue(struct cake_tin *tin, bool decaying_first);
void cake_host_gains(struct cake_tin *tin, const struct cake_queue *queue, u8 isolation);
void cake_host_loses(struct cake_tin *tin, const struct cake_queue *queue, u8 isolation);
void cake_queue_arrived(struct cake_tin *tin, struct cake_queue *queue, u8 isolation);
void cake_queue_rotate(struct cake_tin *tin, struct cake_queue *queue, u8 isolation);
void cake_queue_emptied(struct cake_tin *tin, struct cake_queue *queue, u8 isolation, s64 now);
void cake_note_delay(struct cake_tin_stats *stats, u64 delay);

/* classify.c */
struct cake_queue *cake_classify(struct cake_tin *tin, struct sk_buff *skb, u8 isolation);

/* cobalt.c */
bool cobalt_at_rest(const struct cobalt *c, s64 now);
bool cobalt_queue_full(struct cobalt *c, const struct cobalt_params *p, s64 now);
bool cobalt_queue_empty(struct cobalt *c, const struct cobalt_params *p, s64 now);
enum cobalt_verdict cobalt_dequeue(struct cobalt *c, const struct cobalt_params *p, s64 now, struct sk_buff *skb,
				   u32 bulk_flows);
bool cake_sce_mark(u32 thresh, u64 target, u64 sojourn, struct sk_buff *skb);

/* overflow.c */
void cake_overflow_init(struct cake_overflow *o);
void cake_overflow_grow(struct cake_overflow *o, u32 id, u32 bytes);
void cake_overflow_shrink(struct cake_overflow *o, u32 id, u32 bytes);
void cake_overflow_sent(struct cake_overflow *o);
u32 cake_overflow_longest(struct cake_overflow *o);

/* ack_filter.c */
struct sk_buff *cake_ack_filter(struct cake_queue *queue, u8 mode);

/* autorate.c */
void cake_autorate_pass(struct cake_autorate *a, s64 now);
bool cake_autorate_arrived(struct cake_autorate *a, s64 now, u32 bytes);

/* config.c */
extern const struct cake_config cake_config_default;
int cake_config_take(struct cake_config *config, struct nlattr *opt, struct netlink_ext_ack *extack);
int cake_config_dump(const struct cake_config *config, struct sk_buff *skb);

/* stats.c */
int cake_stats_dump(const struct cake *q, struct gnet_dump *d);

#endif

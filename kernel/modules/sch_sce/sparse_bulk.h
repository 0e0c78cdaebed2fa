/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cheap nasty queueing: a flow's first packet goes to a sparse queue with strict priority and leaves a token in the bulk
 * queue; packets that find a token or a packet of their flow there join the bulk queue.
 */
#ifndef BAKEOFF_SPARSE_BULK_H
#define BAKEOFF_SPARSE_BULK_H

#include "sce.h"

/* A flow has one at most. */
struct sparse_bulk_token {
	u32 seq;
	u16 slot;
};

struct sparse_bulk {
	struct sk_buff_head sparse;
	struct sk_buff_head bulk;		/* packets only */
	struct sparse_bulk_token *tokens;	/* a ring of SCE_SLOTS */
	u32 *counts;				/* of each flow: packets and token in the bulk queue */
	u32 seq;				/* what joined the bulk queue */
	u32 nr_tokens;
	u32 active;				/* flows with a count */
	u16 head;				/* the first token */
};

static inline int sparse_bulk_init(struct sparse_bulk *q)
{
	__skb_queue_head_init(&q->sparse);
	__skb_queue_head_init(&q->bulk);
	q->tokens = kvcalloc(SCE_SLOTS, sizeof(*q->tokens), GFP_KERNEL);
	q->counts = kvcalloc(SCE_SLOTS, sizeof(*q->counts), GFP_KERNEL);
	return q->tokens && q->counts ? 0 : -ENOMEM;
}

static inline void sparse_bulk_destroy(struct sparse_bulk *q)
{
	kvfree(q->tokens);
	kvfree(q->counts);
}

static inline void sparse_bulk_reset(struct sparse_bulk *q)
{
	sce_purge(&q->sparse);
	sce_purge(&q->bulk);
	memset(q->counts, 0, SCE_SLOTS * sizeof(*q->counts));
	q->nr_tokens = 0;
	q->active = 0;
}

/* Packets in both queues. */
static inline u32 sparse_bulk_len(const struct sparse_bulk *q)
{
	return skb_queue_len(&q->sparse) + skb_queue_len(&q->bulk);
}

static inline void sparse_bulk_left(struct sparse_bulk *q, u16 slot)
{
	if (!--q->counts[slot])
		q->active--;
}

static inline void sparse_bulk_enqueue(struct sparse_bulk *q, struct sk_buff *skb)
{
	u16 slot = sce_cb(skb)->slot;

	if (q->counts[slot]++) {
		sce_cb(skb)->seq = q->seq++;
		__skb_queue_tail(&q->bulk, skb);
		return;
	}
	q->active++;
	__skb_queue_tail(&q->sparse, skb);
	q->tokens[(u16)(q->head + q->nr_tokens++)] = (struct sparse_bulk_token){ .seq = q->seq++, .slot = slot };
}

/* Takes the tokens that stand ahead of the first bulk packet: all of them if there is none. */
static inline void sparse_bulk_skip_tokens(struct sparse_bulk *q)
{
	const struct sk_buff *first = skb_peek(&q->bulk);

	while (q->nr_tokens) {
		const struct sparse_bulk_token *token = &q->tokens[q->head];

		if (first && (s32)(token->seq - sce_cb(first)->seq) > 0)
			return;
		sparse_bulk_left(q, token->slot);
		q->head++;
		q->nr_tokens--;
	}
}

/* A packet comes: an idle time gives the shaper no credit, and tokens without packets leave. */
static inline void sparse_bulk_wake(struct sparse_bulk *q, struct sce_sched *sce, u64 now)
{
	if (!sparse_bulk_len(q) && sce->next <= now) {
		sce->next = now;
		sparse_bulk_skip_tokens(q);
	}
}

static inline struct sk_buff *sparse_bulk_pop(struct sparse_bulk *q)
{
	struct sk_buff *skb;

	sparse_bulk_skip_tokens(q);
	skb = __skb_dequeue(&q->bulk);
	if (skb)
		sparse_bulk_left(q, sce_cb(skb)->slot);
	return skb;
}

static inline bool sparse_bulk_above(u64 sojourn, u64 share, u64 limit, u64 len)
{
	u64 left = mul_u64_u64_shr(sojourn, share, 64), right = mul_u64_u64_shr(limit, len, 64);

	return left == right ? sojourn * share > limit * len : left > right;
}

/*
 * The thresholds that a flow's weighted delay is above: its share of the queue times the number of flows, applied to the
 * delay of a packet that has just left.
 */
static inline struct cobalt_over sparse_bulk_over(const struct sparse_bulk *q, u16 slot, u64 sojourn,
						  const struct cobalt_params *params)
{
	u64 flows = q->active > q->nr_tokens ? q->active - q->nr_tokens : 0;
	u64 share = ((u64)q->counts[slot] + 1) * flows;
	u64 len = (u64)sparse_bulk_len(q) + 1;

	return (struct cobalt_over){
		.ce = sparse_bulk_above(sojourn, share, params->target, len),
		.sce = sparse_bulk_above(sojourn, share, params->sce_target, len),
		.blue = sparse_bulk_above(sojourn, share, params->blue_threshold, len),
	};
}

/* The next bulk packet that its flow's AQM lets through; a flow's last packet is never dropped. */
static inline struct sk_buff *sparse_bulk_dequeue(struct Qdisc *sch, struct sparse_bulk *q, struct cobalt *cobalts,
						  const struct cobalt_params *params, u64 now)
{
	struct sce_sched *sce = qdisc_priv(sch);
	struct sk_buff *skb;

	while ((skb = sparse_bulk_pop(q))) {
		const struct sce_cb *cb = sce_cb(skb);
		struct cobalt_over over = sparse_bulk_over(q, cb->slot, now - cb->enqueued, params);
		struct cobalt_signal signal;

		signal = cobalt_dequeue(&cobalts[cb->slot], params, now, INET_ECN_MASK & cb->dsfield, over);
		if (!signal.drop || !q->counts[cb->slot]) {
			sce_mark(sce, skb, signal);
			break;
		}
		sce_drop(sch, sce, skb);
	}
	return skb;
}

#endif

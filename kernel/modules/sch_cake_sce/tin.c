// SPDX-License-Identifier: GPL-2.0
/* A tin's queues, and whose turn it is among them: DRR++ with a share for each host. */
#include <linux/random.h>

#include "cake.h"

/* Forgets the flows. The packets are gone already. */
void cake_tin_clear(struct cake_tin *tin)
{
	u32 i;

	memset(tin->queues, 0, sizeof(tin->queues));
	memset(tin->sources, 0, sizeof(tin->sources));
	memset(tin->destinations, 0, sizeof(tin->destinations));
	for (i = 0; i < CAKE_QUEUES; i++)
		INIT_LIST_HEAD(&tin->queues[i].list);
	INIT_LIST_HEAD(&tin->new_queues);
	INIT_LIST_HEAD(&tin->old_queues);
	INIT_LIST_HEAD(&tin->decaying_queues);
	tin->time_next = 0;
	tin->deficit = 0;
	tin->backlog = 0;
	tin->sparse_flows = 0;
	tin->bulk_flows = 0;
	tin->decaying_flows = 0;
}

/* Whether any queue may have packets. */
bool cake_tin_active(const struct cake_tin *tin)
{
	return tin->sparse_flows + tin->bulk_flows > 0;
}

/* New queues go before old ones, a decaying one before both at most once per packet. */
struct cake_queue *cake_next_queue(struct cake_tin *tin, bool decaying_first)
{
	struct list_head *const order[] = {
		decaying_first ? &tin->decaying_queues : &tin->new_queues,
		&tin->new_queues, &tin->old_queues, &tin->decaying_queues,
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(order); i++)
		if (!list_empty(order[i]))
			return list_first_entry(order[i], struct cake_queue, list);
	return NULL;
}

static bool shares_by_source(u8 isolation)
{
	return (isolation & CAKE_FLOW_DUAL_SRC) == CAKE_FLOW_DUAL_SRC;
}

static bool shares_by_destination(u8 isolation)
{
	return (isolation & CAKE_FLOW_DUAL_DST) == CAKE_FLOW_DUAL_DST;
}

/* A flow's part of the quantum of its host, of the one with more bulk flows. Chance keeps rounding from adding up. */
static s32 quantum_of(const struct cake_tin *tin, const struct cake_queue *queue, u8 isolation)
{
	u32 load = 1;

	if (shares_by_source(isolation))
		load = max_t(u32, load, tin->sources[queue->src].bulk_flows);
	if (shares_by_destination(isolation))
		load = max_t(u32, load, tin->destinations[queue->dst].bulk_flows);
	return (tin->flow_quantum * (U16_MAX / load) + get_random_u16()) >> 16;
}

void cake_host_gains(struct cake_tin *tin, const struct cake_queue *queue, u8 isolation)
{
	struct cake_host *source = &tin->sources[queue->src];
	struct cake_host *destination = &tin->destinations[queue->dst];

	if (shares_by_source(isolation) && source->bulk_flows < CAKE_QUEUES)
		source->bulk_flows++;
	if (shares_by_destination(isolation) && destination->bulk_flows < CAKE_QUEUES)
		destination->bulk_flows++;
}

void cake_host_loses(struct cake_tin *tin, const struct cake_queue *queue, u8 isolation)
{
	struct cake_host *source = &tin->sources[queue->src];
	struct cake_host *destination = &tin->destinations[queue->dst];

	if (shares_by_source(isolation) && source->bulk_flows)
		source->bulk_flows--;
	if (shares_by_destination(isolation) && destination->bulk_flows)
		destination->bulk_flows--;
}

static void becomes_bulk(struct cake_tin *tin, struct cake_queue *queue, u8 isolation)
{
	queue->set = CAKE_BULK;
	tin->sparse_flows--;
	tin->bulk_flows++;
	cake_host_gains(tin, queue, isolation);
}

/* A packet came to the queue. */
void cake_queue_arrived(struct cake_tin *tin, struct cake_queue *queue, u8 isolation)
{
	switch (queue->set) {
	case CAKE_DECAYING:
		tin->decaying_flows--;
		fallthrough;
	case CAKE_IDLE:
		list_move_tail(&queue->list, &tin->new_queues);
		queue->set = CAKE_SPARSE;
		tin->sparse_flows++;
		queue->deficit = quantum_of(tin, queue, isolation);
		break;
	case CAKE_SPARSE_WAIT:
		becomes_bulk(tin, queue, isolation);
		break;
	}
}

/* The queue has used up its turn: it goes behind the old ones, with a new quantum. */
void cake_queue_rotate(struct cake_tin *tin, struct cake_queue *queue, u8 isolation)
{
	if (queue->set == CAKE_SPARSE) {
		if (queue->head)
			becomes_bulk(tin, queue, isolation);
		else
			queue->set = CAKE_SPARSE_WAIT;
	}
	queue->deficit += quantum_of(tin, queue, isolation);
	list_move_tail(&queue->list, &tin->old_queues);
}

/* The queue was served and had nothing: it stays on a list until its COBALT is at rest. */
void cake_queue_emptied(struct cake_tin *tin, struct cake_queue *queue, u8 isolation, s64 now)
{
	if (cobalt_queue_empty(&queue->cobalt, &tin->params, now) && tin->stats.unresponsive_flows)
		tin->stats.unresponsive_flows--;
	switch (queue->set) {
	case CAKE_BULK:
		tin->bulk_flows--;
		cake_host_loses(tin, queue, isolation);
		break;
	case CAKE_SPARSE:
	case CAKE_SPARSE_WAIT:
		tin->sparse_flows--;
		break;
	case CAKE_DECAYING:
		tin->decaying_flows--;
		break;
	}
	if (cobalt_at_rest(&queue->cobalt, now)) {
		queue->set = CAKE_IDLE;
		list_del_init(&queue->list);
	} else {
		queue->set = CAKE_DECAYING;
		tin->decaying_flows++;
		list_move_tail(&queue->list, &tin->decaying_queues);
	}
}

/* The averages of peak and base are quick to follow what is beyond them, and slow to return. */
void cake_note_delay(struct cake_tin_stats *stats, u64 delay)
{
	stats->average_delay = cake_average(stats->average_delay, delay, 8);
	stats->peak_delay = cake_average(stats->peak_delay, delay, delay > stats->peak_delay ? 2 : 8);
	stats->base_delay = cake_average(stats->base_delay, delay, delay < stats->base_delay ? 2 : 8);
}

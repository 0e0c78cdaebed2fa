// SPDX-License-Identifier: GPL-2.0
/*
 * Which queue is the longest. The heap is put in order when memory runs out, and kept so until U16_MAX packets were sent
 * without another drop for want of memory.
 */
#include "cake.h"

#define SIZE	(TC_CAKE_MAX_TINS * CAKE_QUEUES)

static u32 backlog_at(const struct cake_overflow *o, u32 at)
{
	return o->backlog[o->heap[at]];
}

static void swap_places(struct cake_overflow *o, u32 a, u32 b)
{
	swap(o->heap[a], o->heap[b]);
	o->position[o->heap[a]] = a;
	o->position[o->heap[b]] = b;
}

static void sift_down(struct cake_overflow *o, u32 at)
{
	for (;;) {
		u32 most = at, child;

		for (child = 2 * at + 1; child <= 2 * at + 2 && child < SIZE; child++)
			if (backlog_at(o, child) > backlog_at(o, most))
				most = child;
		if (most == at)
			return;
		swap_places(o, at, most);
		at = most;
	}
}

static void sift_up(struct cake_overflow *o, u32 at)
{
	while (at && backlog_at(o, at) > backlog_at(o, (at - 1) / 2)) {
		swap_places(o, at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
}

/* At first the heap has the first queue of each tin, then the second, and so on: of equally long ones that decides. */
void cake_overflow_init(struct cake_overflow *o)
{
	u32 at;

	for (at = 0; at < SIZE; at++) {
		o->heap[at] = at % TC_CAKE_MAX_TINS * CAKE_QUEUES + at / TC_CAKE_MAX_TINS;
		o->position[o->heap[at]] = at;
	}
}

void cake_overflow_grow(struct cake_overflow *o, u32 id, u32 bytes)
{
	o->backlog[id] += bytes;
	if (o->patience)
		sift_up(o, o->position[id]);
}

void cake_overflow_shrink(struct cake_overflow *o, u32 id, u32 bytes)
{
	o->backlog[id] -= bytes;
	if (o->patience)
		sift_down(o, o->position[id]);
}

void cake_overflow_sent(struct cake_overflow *o)
{
	if (o->patience)
		o->patience--;
}

/* The longest queue, as tin * CAKE_QUEUES + queue. */
u32 cake_overflow_longest(struct cake_overflow *o)
{
	u32 at;

	if (!o->patience)
		for (at = SIZE / 2; at--;)
			sift_down(o, at);
	o->patience = U16_MAX;
	return o->heap[0];
}

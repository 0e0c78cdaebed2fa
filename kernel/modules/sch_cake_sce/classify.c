// SPDX-License-Identifier: GPL-2.0
/* Set-associative hashing: which queue a flow gets, and for which hosts it counts. */
#include <net/flow_dissector.h>

#include "cake.h"

struct hashes {
	u32 flow;
	u32 src;
	u32 dst;
};

/* The eight places for a hash: its own first, then the others of its set. */
static u32 place(u32 hash, u32 way)
{
	u32 home = hash % CAKE_QUEUES;

	return home - home % CAKE_WAYS + (home + way) % CAKE_WAYS;
}

/* The hash of one of the two addresses; the same of an address that sends and of one that receives. */
static u32 address_hash(const struct flow_keys *keys, bool source)
{
	struct flow_keys host;

	memset(&host, 0, sizeof(host));
	host.control.addr_type = keys->control.addr_type;
	switch (keys->control.addr_type) {
	case FLOW_DISSECTOR_KEY_IPV4_ADDRS:
		host.addrs.v4addrs.src = source ? keys->addrs.v4addrs.src : keys->addrs.v4addrs.dst;
		break;
	case FLOW_DISSECTOR_KEY_IPV6_ADDRS:
		host.addrs.v6addrs.src = source ? keys->addrs.v6addrs.src : keys->addrs.v6addrs.dst;
		break;
	default:
		return 0;
	}
	return flow_hash_from_keys(&host);
}

static struct hashes hashes_of(struct sk_buff *skb, u8 isolation)
{
	struct hashes h = {};
	struct flow_keys keys;

	/* Ahead of dissecting: a hash that TCP has given is that of the connection. */
	if (isolation & CAKE_FLOW_FLOWS)
		h.flow = skb_get_hash(skb);
	if (isolation & CAKE_FLOW_HOSTS) {
		skb_flow_dissect_flow_keys(skb, &keys, FLOW_DISSECTOR_F_STOP_AT_FLOW_LABEL);
		if (isolation & CAKE_FLOW_SRC_IP)
			h.src = address_hash(&keys, true);
		if (isolation & CAKE_FLOW_DST_IP)
			h.dst = address_hash(&keys, false);
	}
	if (!(isolation & CAKE_FLOW_FLOWS))
		h.flow = h.src ^ h.dst;
	return h;
}

/* The place of a host: its own, else one without bulk flows, else its home. */
static u16 find_host(struct cake_host *hosts, u32 hash)
{
	u32 way, found = hash % CAKE_QUEUES;

	for (way = 0; way < CAKE_WAYS; way++)
		if (hosts[place(hash, way)].tag == hash)
			return place(hash, way);
	for (way = 0; way < CAKE_WAYS; way++) {
		if (!hosts[place(hash, way)].bulk_flows) {
			found = place(hash, way);
			break;
		}
	}
	hosts[found].tag = hash;
	return found;
}

/*
 * A queue that holds the flow, else an idle one, else the home, shared with who is there; and whether its hosts must be
 * looked up.
 */
static u32 find_queue(struct cake_tin *tin, u32 hash, bool *is_new)
{
	u32 way, at;

	for (way = 0; way < CAKE_WAYS; way++) {
		at = place(hash, way);
		if (tin->queues[at].tag == hash) {
			*is_new = tin->queues[at].set == CAKE_IDLE;
			tin->stats.way_hits += way > 0;
			return at;
		}
	}
	*is_new = true;
	for (way = 0; way < CAKE_WAYS; way++) {
		at = place(hash, way);
		if (tin->queues[at].set == CAKE_IDLE) {
			tin->stats.way_misses++;
			return at;
		}
	}
	tin->stats.way_collisions++;
	return hash % CAKE_QUEUES;
}

/* The queue for a packet, which from now on is that flow's. */
struct cake_queue *cake_classify(struct cake_tin *tin, struct sk_buff *skb, u8 isolation)
{
	struct cake_queue *queue = &tin->queues[0];
	struct hashes h;
	bool is_new, is_bulk;

	if (isolation == CAKE_FLOW_NONE)
		return queue;
	h = hashes_of(skb, isolation);
	queue = &tin->queues[find_queue(tin, h.flow, &is_new)];
	queue->tag = h.flow;
	if (!is_new)
		return queue;
	is_bulk = queue->set == CAKE_BULK;
	if (is_bulk)
		cake_host_loses(tin, queue, isolation);
	if ((isolation & CAKE_FLOW_DUAL_SRC) == CAKE_FLOW_DUAL_SRC)
		queue->src = find_host(tin->sources, h.src);
	if ((isolation & CAKE_FLOW_DUAL_DST) == CAKE_FLOW_DUAL_DST)
		queue->dst = find_host(tin->destinations, h.dst);
	if (is_bulk)
		cake_host_gains(tin, queue, isolation);
	return queue;
}

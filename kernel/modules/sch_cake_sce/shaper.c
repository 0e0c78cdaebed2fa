// SPDX-License-Identifier: GPL-2.0
/* How long bytes take, what a packet costs on the link, and the clocks that are charged for it. */
#include <linux/tcp.h>
#include <linux/udp.h>

#include "cake.h"

#define SLOWEST	64ULL	/* the least rate */

struct cake_pace cake_pace(u64 rate)
{
	struct cake_pace pace = { .shift = 34 };

	if (!rate)
		return pace;
	pace.ns = div64_u64((u64)NSEC_PER_SEC << pace.shift, max(rate, SLOWEST));
	while (pace.ns >> 34) {
		pace.ns >>= 1;
		pace.shift--;
	}
	return pace;
}

s64 cake_pace_time(struct cake_pace pace, u32 bytes)
{
	return (bytes * pace.ns) >> pace.shift;
}

/*
 * The tin's clock runs on from where it is, but a packet that finds it ahead puts it no further than its own time from
 * now. A packet that is dropped does not move the latest time.
 */
void cake_charge(struct cake *q, struct cake_tin *tin, u32 bytes, s64 now, bool dropped)
{
	s64 by_tin, by_all;

	if (!q->pace.ns)
		return;
	by_tin = cake_pace_time(tin->pace, bytes);
	if (tin->time_next < now)
		tin->time_next += by_tin;
	else
		tin->time_next = max(tin->time_next, now + by_tin);
	by_all = cake_pace_time(q->pace, bytes);
	q->time_next += by_all;
	if (!dropped)
		q->failsafe_next += by_all + by_all / 2;
}

void cake_lengths_forget(struct cake_lengths *lengths)
{
	lengths->min_network = U16_MAX;
	lengths->max_network = 0;
	lengths->min_adjusted = U16_MAX;
	lengths->max_adjusted = 0;
}

/* What a frame costs whose header of the link is so long; the statistics take note of it. */
static u32 adjusted(struct cake *q, u32 len, u32 header)
{
	const struct cake_config *config = &q->config;
	struct cake_lengths *lengths = &q->lengths;
	s32 cost;

	if (config->replaces_header)
		len -= min(len, header);
	lengths->min_network = min(lengths->min_network, len);
	lengths->max_network = max(lengths->max_network, len);
	lengths->header = cake_average(lengths->header, (u64)header << 16, 8);
	cost = max((s32)len + config->overhead, (s32)config->mpu);
	switch (config->cells) {
	case CAKE_ATM_ATM:
		/* Cells of 53 bytes carry 48. */
		cost = DIV_ROUND_UP(cost, 48) * 53;
		break;
	case CAKE_ATM_PTM:
		/* 65 bytes carry 64. */
		cost += DIV_ROUND_UP(cost, 64);
		break;
	}
	lengths->min_adjusted = min_t(u32, lengths->min_adjusted, cost);
	lengths->max_adjusted = max_t(u32, lengths->max_adjusted, cost);
	return cost;
}

/* All headers of each segment; 0 if they cannot be told. */
static u32 headers_of_segments(const struct sk_buff *skb)
{
	u32 offset;

	if (!skb_transport_header_was_set(skb))
		return 0;
	offset = skb->encapsulation ? skb_inner_transport_offset(skb) : skb_transport_offset(skb);
	if (skb_shinfo(skb)->gso_type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6)) {
		struct tcphdr buffer;
		const struct tcphdr *tcp = skb_header_pointer(skb, offset, sizeof(buffer), &buffer);

		return tcp ? offset + __tcp_hdrlen(tcp) : 0;
	}
	return offset + sizeof(struct udphdr);
}

u32 cake_adjusted_len(struct cake *q, const struct sk_buff *skb)
{
	u32 header = skb_network_offset(skb);
	u32 headers, size, segments, payload, cost;

	if (!skb_is_gso(skb))
		return adjusted(q, qdisc_pkt_len(skb), header);
	headers = headers_of_segments(skb);
	if (!headers || skb->len <= headers)
		return adjusted(q, qdisc_pkt_len(skb), header);
	size = skb_shinfo(skb)->gso_size;
	payload = skb->len - headers;
	segments = DIV_ROUND_UP(payload, size);
	cost = 0;
	if (segments > 1)
		cost = (segments - 1) * adjusted(q, headers + size, header);
	return cost + adjusted(q, headers + payload - (segments - 1) * size, header);
}

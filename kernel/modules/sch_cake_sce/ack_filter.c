// SPDX-License-Identifier: GPL-2.0
/*
 * The ACK filter: a newer pure acknowledgement takes the place of an older one of its connection. The older goes only if
 * the newer says at least as much: acknowledgement number, timestamps, SACK; and of a run of equal ECE and CWR bits one
 * stays, so that nothing of ECN is lost. Unless the filter is aggressive, two of them must stand in the queue. Packets with
 * AccECN's AE bit or with an option that is not known here stay.
 */
#include <linux/ipv6.h>
#include <linux/unaligned.h>
#include <net/ip.h>
#include <net/tcp.h>

#include "cake.h"

#define MAX_BLOCKS	4

/* What the filter wants to know of a segment; copies, since headers may lie in fragments. */
struct segment {
	union {
		struct iphdr v4;
		struct ipv6hdr v6;
	} ip;
	struct {
		struct tcphdr head;
		u8 options[60 - sizeof(struct tcphdr)];
	} tcp;
	u32 ack;
	u32 sent;		/* timestamps, if there are any */
	u32 echo;
	u32 payload;
	struct {
		u32 start;
		u32 end;
	} sack[MAX_BLOCKS];
	u8 blocks;
	bool is_v6;
	bool has_times;
	bool has_others;	/* options that are not known here */
};

static void read_option(struct segment *s, const u8 *at, u8 length)
{
	u8 i;

	if (at[0] == TCPOPT_TIMESTAMP && length == TCPOLEN_TIMESTAMP) {
		s->has_times = true;
		s->sent = get_unaligned_be32(at + 2);
		s->echo = get_unaligned_be32(at + 6);
		return;
	}
	if (at[0] == TCPOPT_SACK && length >= 2 + TCPOLEN_SACK_PERBLOCK && (length - 2) % TCPOLEN_SACK_PERBLOCK == 0) {
		s->blocks = min((length - 2) / TCPOLEN_SACK_PERBLOCK, MAX_BLOCKS);
		for (i = 0; i < s->blocks; i++) {
			s->sack[i].start = get_unaligned_be32(at + 2 + i * TCPOLEN_SACK_PERBLOCK);
			s->sack[i].end = get_unaligned_be32(at + 6 + i * TCPOLEN_SACK_PERBLOCK);
		}
		return;
	}
	s->has_others = true;
}

static void read_options(struct segment *s)
{
	u32 left = __tcp_hdrlen(&s->tcp.head) - sizeof(struct tcphdr);
	const u8 *at = s->tcp.options;

	while (left && *at != TCPOPT_EOL) {
		u8 length = 1;

		if (*at != TCPOPT_NOP) {
			if (left < 2 || at[1] < 2 || at[1] > left) {
				s->has_others = true;
				return;
			}
			length = at[1];
			read_option(s, at, length);
		}
		at += length;
		left -= length;
	}
}

/* Whether the packet is a whole segment of TCP over IP. */
static bool read_segment(struct segment *s, const struct sk_buff *skb)
{
	u32 offset = skb_network_offset(skb);
	u32 end, length;

	memset(s, 0, sizeof(*s));
	switch (skb_protocol(skb, true)) {
	case htons(ETH_P_IP):
		if (skb_copy_bits(skb, offset, &s->ip.v4, sizeof(s->ip.v4)) || s->ip.v4.ihl < 5 ||
		    s->ip.v4.protocol != IPPROTO_TCP || ip_is_fragment(&s->ip.v4))
			return false;
		end = offset + ntohs(s->ip.v4.tot_len);
		offset += s->ip.v4.ihl * 4;
		break;
	case htons(ETH_P_IPV6):
		if (skb_copy_bits(skb, offset, &s->ip.v6, sizeof(s->ip.v6)) || s->ip.v6.nexthdr != IPPROTO_TCP)
			return false;
		s->is_v6 = true;
		offset += sizeof(s->ip.v6);
		end = offset + ntohs(s->ip.v6.payload_len);
		break;
	default:
		return false;
	}
	if (skb_copy_bits(skb, offset, &s->tcp.head, sizeof(s->tcp.head)))
		return false;
	length = __tcp_hdrlen(&s->tcp.head);
	if (length < sizeof(s->tcp.head) || offset + length > end ||
	    skb_copy_bits(skb, offset + sizeof(s->tcp.head), s->tcp.options, length - sizeof(s->tcp.head)))
		return false;
	s->payload = end - offset - length;
	s->ack = ntohl(s->tcp.head.ack_seq);
	read_options(s);
	return true;
}

static bool of_one_connection(const struct segment *a, const struct segment *b)
{
	if (a->is_v6 != b->is_v6 || a->tcp.head.source != b->tcp.head.source || a->tcp.head.dest != b->tcp.head.dest)
		return false;
	if (a->is_v6)
		return ipv6_addr_equal(&a->ip.v6.saddr, &b->ip.v6.saddr) &&
		       ipv6_addr_equal(&a->ip.v6.daddr, &b->ip.v6.daddr);
	return a->ip.v4.saddr == b->ip.v4.saddr && a->ip.v4.daddr == b->ip.v4.daddr;
}

static __be32 ecn_bits(const struct segment *s)
{
	return tcp_flag_word(&s->tcp.head) & (TCP_FLAG_ECE | TCP_FLAG_CWR);
}

enum more { OLDER_MORE, SAME, NEWEST_MORE };

/* Which of two reports more by SACK; a D-SACK always does. */
static enum more sack_says(const struct segment *older, const struct segment *newest)
{
	u32 older_bytes = 0, newest_bytes = 0;
	u8 i, j;

	if (!older->blocks)
		return newest->blocks ? NEWEST_MORE : SAME;
	for (i = 0; i < older->blocks; i++) {
		if (before(older->sack[i].start, older->ack))
			return OLDER_MORE;
		for (j = 0; j < newest->blocks; j++)
			if (!after(newest->sack[j].start, older->sack[i].start) &&
			    !before(newest->sack[j].end, older->sack[i].end))
				break;
		if (j == newest->blocks)
			return OLDER_MORE;
		older_bytes += older->sack[i].end - older->sack[i].start;
	}
	for (j = 0; j < newest->blocks; j++)
		newest_bytes += newest->sack[j].end - newest->sack[j].start;
	return newest_bytes > older_bytes ? NEWEST_MORE : SAME;
}

/* Whether the older is a pure acknowledgement that says nothing that the newest does not say. */
static bool may_go(const struct segment *older, const struct segment *newest)
{
	const __be32 any = TCP_FLAG_ECE | TCP_FLAG_CWR | TCP_DATA_OFFSET | htonl(U16_MAX);

	if ((tcp_flag_word(&older->tcp.head) & ~any) != TCP_FLAG_ACK || older->payload || older->has_others)
		return false;
	if (older->has_times && (!newest->has_times || after(older->sent, newest->sent) ||
				 after(older->echo, newest->echo)))
		return false;
	if (after(older->ack, newest->ack))
		return false;
	switch (sack_says(older, newest)) {
	case OLDER_MORE:
		return false;
	case SAME:
		return before(older->ack, newest->ack);
	default:
		return true;
	}
}

static struct sk_buff *take_out(struct cake_queue *queue, struct sk_buff *before, struct sk_buff *skb)
{
	if (before)
		before->next = skb->next;
	else
		queue->head = skb->next;
	skb_mark_not_on_list(skb);
	return skb;
}

/* Takes the acknowledgement out of the queue that the packet at its tail makes superfluous. */
struct sk_buff *cake_ack_filter(struct cake_queue *queue, u8 mode)
{
	struct sk_buff *newest = queue->tail, *at, *before = NULL, *found = NULL, *found_before = NULL;
	struct segment new, old;
	__be32 run = 0;
	u32 count = 0;

	if (mode == CAKE_ACK_NONE || queue->head == newest || skb_is_gso(newest) || !read_segment(&new, newest) ||
	    !new.tcp.head.ack || new.tcp.head.syn)
		return NULL;
	for (at = queue->head; at != newest; before = at, at = at->next) {
		if (skb_is_gso(at) || !read_segment(&old, at) || !of_one_connection(&old, &new))
			continue;
		if (found && run != ecn_bits(&old)) {
			found = NULL;
			count--;
		}
		if (!may_go(&old, &new))
			continue;
		if (!found) {
			found = at;
			found_before = before;
			run = ecn_bits(&old);
		}
		if (++count > 1)
			return take_out(queue, found_before, found);
	}
	/* One alone goes only if the newest stands right behind it and says the same of ECN. */
	if (mode == CAKE_ACK_AGGRESSIVE && found && found->next == newest && run == ecn_bits(&new))
		return take_out(queue, found_before, found);
	return NULL;
}

// SPDX-License-Identifier: GPL-2.0
/* Which tin a codepoint goes to, and what part of the bandwidth a tin has. */
#include <linux/bitops.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>

#include "cake.h"

/* Codepoints by the names of RFC 2474, 2597, 3246, 5865 and 8622, and two of RFC 1349's. */
enum {
	DSCP_LE = 1,
	DSCP_TOS2 = 2,
	DSCP_TOS4 = 4,
	DSCP_CS1 = 8,
	DSCP_CS2 = 16,
	DSCP_CS3 = 24,
	DSCP_CS4 = 32,
	DSCP_CS5 = 40,
	DSCP_VA = 44,
	DSCP_EF = 46,
	DSCP_CS6 = 48,
	DSCP_CS7 = 56,
};

/* Assured forwarding: the class whose codepoint this is, or 0. */
static u8 af_class(u8 dscp)
{
	u8 drop_precedence = dscp % 8;

	if (drop_precedence != 2 && drop_precedence != 4 && drop_precedence != 6)
		return 0;
	return dscp / 8 <= 4 ? dscp / 8 : 0;
}

static u8 tin_of_three(u8 dscp)
{
	switch (dscp) {
	case DSCP_LE:
	case DSCP_CS1:
		return 1;
	case DSCP_TOS4:
	case DSCP_VA:
	case DSCP_EF:
	case DSCP_CS6:
	case DSCP_CS7:
		return 2;
	default:
		return 0;
	}
}

static u8 tin_of_four(u8 dscp)
{
	switch (dscp) {
	case DSCP_LE:
	case DSCP_CS1:
		return 1;
	case DSCP_TOS4:
	case DSCP_CS2:
	case DSCP_CS3:
		return 2;
	case DSCP_CS4:
	case DSCP_CS5:
	case DSCP_VA:
	case DSCP_EF:
	case DSCP_CS6:
	case DSCP_CS7:
		return 3;
	default:
		return af_class(dscp) >= 2 ? 2 : 0;
	}
}

static u8 tin_of_eight(u8 dscp)
{
	/* By the class of assured forwarding; 2 is that of all others. */
	static const u8 by_class[] = { 2, 1, 4, 3, 3 };

	switch (dscp) {
	case DSCP_LE:
		return 0;
	case DSCP_TOS2:
	case DSCP_CS1:
		return 1;
	case DSCP_CS3:
		return 3;
	case DSCP_TOS4:
		return 4;
	case DSCP_CS2:
		return 5;
	case DSCP_CS4:
	case DSCP_CS5:
	case DSCP_VA:
	case DSCP_EF:
		return 6;
	case DSCP_CS6:
	case DSCP_CS7:
		return 7;
	default:
		return by_class[af_class(dscp)];
	}
}

static u8 tin_of_dscp(u8 diffserv, u8 dscp)
{
	switch (diffserv) {
	case CAKE_DIFFSERV_DIFFSERV3:
		return tin_of_three(dscp);
	case CAKE_DIFFSERV_DIFFSERV4:
		return tin_of_four(dscp);
	case CAKE_DIFFSERV_DIFFSERV8:
		return tin_of_eight(dscp);
	case CAKE_DIFFSERV_PRECEDENCE:
		return dscp >> 3;
	default:
		return 0;
	}
}

/* The packet's codepoint. Without an IP header it is 0, and that of network control for ARP. */
static u8 dscp_of(struct sk_buff *skb)
{
	int field = skb_get_dsfield(skb);

	if (field >= 0)
		return field >> 2;
	return skb_protocol(skb, true) == htons(ETH_P_ARP) ? DSCP_CS7 : 0;
}

static void wash(struct sk_buff *skb)
{
	u32 offset = skb_network_offset(skb);

	switch (skb_protocol(skb, true)) {
	case htons(ETH_P_IP):
		if (!skb_try_make_writable(skb, offset + sizeof(struct iphdr)))
			ipv4_change_dsfield(ip_hdr(skb), INET_ECN_MASK, 0);
		break;
	case htons(ETH_P_IPV6):
		if (!skb_try_make_writable(skb, offset + sizeof(struct ipv6hdr)))
			ipv6_change_dsfield(ipv6_hdr(skb), INET_ECN_MASK, 0);
		break;
	}
}

/* The tin that statistics show at a position, counted from 0. */
u8 cake_tin_shown(u8 diffserv, u8 position)
{
	bool bulk_first = diffserv == CAKE_DIFFSERV_DIFFSERV3 || diffserv == CAKE_DIFFSERV_DIFFSERV4;

	/* Bulk comes ahead of best effort there. */
	return bulk_first && position < 2 ? 1 - position : position;
}

/*
 * The tin for a packet. A mark of the firewall, and a priority whose upper half is this qdisc's handle, name one as the
 * statistics count them, from 1; these go ahead of the codepoint, which wash clears.
 */
u8 cake_tin_of(const struct cake *q, u32 handle, struct sk_buff *skb)
{
	const struct cake_config *config = &q->config;
	u32 mark = 0, named = 0;
	u8 dscp = 0;

	if (config->fwmark)
		mark = (skb->mark & config->fwmark) >> __ffs(config->fwmark);
	if (TC_H_MAJ(skb->priority) == handle)
		named = TC_H_MIN(skb->priority);
	if (config->diffserv != CAKE_DIFFSERV_BESTEFFORT || config->wash)
		dscp = dscp_of(skb);
	if (config->wash && dscp)
		wash(skb);
	if (config->diffserv == CAKE_DIFFSERV_BESTEFFORT)
		return 0;
	if (mark && mark <= q->tins_used)
		return cake_tin_shown(config->diffserv, mark - 1);
	if (named && named <= q->tins_used)
		return cake_tin_shown(config->diffserv, named - 1);
	return tin_of_dscp(config->diffserv, dscp);
}

/*
 * Sets the threshold rate and what follows from it. A slow tin has a larger target, one and a half full frames at least.
 */
static void configure(struct cake_tin *tin, u64 rate, s32 quantum, u32 mtu, const struct cake_config *config)
{
	u64 target = (u64)config->target_us * NSEC_PER_USEC;
	u64 interval = (u64)config->rtt_us * NSEC_PER_USEC;
	struct cobalt_params *p = &tin->params;

	tin->rate = rate;
	tin->quantum = quantum;
	tin->deficit = 0;
	tin->pace = cake_pace(rate);
	tin->flow_quantum = rate ? clamp(rate >> 12, 300ULL, 1514ULL) : 1514;
	p->mtu_time = cake_pace_time(tin->pace, mtu);
	p->target = max(target, p->mtu_time * 3 / 2);
	p->interval = max(interval + p->target - target, 2 * p->target);
}

/* Four times what passes in an rtt, at least 4 MiB, at most 10240 packets. */
static u32 memory_limit(const struct cake_config *config, u32 mtu)
{
	u64 limit = U32_MAX;

	if (config->memlimit)
		limit = config->memlimit;
	else if (config->rate)
		/* The lower 32 bits, as in Linux's CAKE. */
		limit = max((u32)mul_u64_u32_div(config->rate, config->rtt_us, 250000), 4U << 20);
	return min(limit, max(10240ULL * mtu, (u64)config->memlimit));
}

/* Tins, rates and limits become what the configuration says; the number of tins. */
u8 cake_tins_configure(struct cake *q, u32 mtu)
{
	static const u8 quartered[][4] = {
		[CAKE_DIFFSERV_DIFFSERV3] = { 0, 4, 2 },
		[CAKE_DIFFSERV_DIFFSERV4] = { 0, 4, 1, 2 },
	};
	const struct cake_config *config = &q->config;
	u64 rate = config->rate;
	s32 quantum = 256;
	u8 i, count;

	switch (config->diffserv) {
	case CAKE_DIFFSERV_DIFFSERV3:
	case CAKE_DIFFSERV_DIFFSERV4:
		count = config->diffserv == CAKE_DIFFSERV_DIFFSERV3 ? 3 : 4;
		for (i = 0; i < count; i++) {
			u8 shift = quartered[config->diffserv][i];

			configure(&q->tins[i], rate >> shift, 1024 >> shift, mtu, config);
		}
		break;
	case CAKE_DIFFSERV_DIFFSERV8:
	case CAKE_DIFFSERV_PRECEDENCE:
		count = 8;
		for (i = 0; i < count; i++) {
			configure(&q->tins[i], rate, quantum, mtu, config);
			rate = (rate * 7) >> 3;
			quantum = (quantum * 7) >> 3;
		}
		break;
	default:
		count = 1;
		configure(&q->tins[0], rate, U16_MAX, mtu, config);
	}
	q->pace = q->tins[0].pace;
	q->memory_limit = memory_limit(config, mtu);
	return count;
}

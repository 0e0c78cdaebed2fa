// SPDX-License-Identifier: GPL-2.0
/*
 * ECT(1) on the established connections of prague.
 *
 * The core puts ECT(1) on SYN and SYN/ACK for TCP_CONG_ECT_1_NEGOTIATION and ECT(0) on every segment after that. A hook
 * behind TCP, where the header of IP is complete, turns ECT(0) into ECT(1). No part of the core looks at what an
 * established sender sent.
 */
#include <linux/module.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/net_namespace.h>

#include "prague.h"

static bool of_prague(const struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;
	const struct tcp_congestion_ops *ops;

	/* A request or a socket in TIME-WAIT has no congestion control. */
	if (!sk || !sk_fullsock(sk) || sk->sk_protocol != IPPROTO_TCP)
		return false;
	ops = READ_ONCE(inet_csk(sk)->icsk_ca_ops);
	return ops == &prague_ops || ops == &prague_2020_ops || ops == &prague_2019_ops;
}

static unsigned int ect1_ipv4(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	if ((ip_hdr(skb)->tos & INET_ECN_MASK) != INET_ECN_ECT_0 || !of_prague(skb))
		return NF_ACCEPT;
	if (skb_ensure_writable(skb, skb_network_offset(skb) + sizeof(struct iphdr)))
		return NF_DROP;
	ipv4_change_dsfield(ip_hdr(skb), (u8)~INET_ECN_MASK, INET_ECN_ECT_1);
	return NF_ACCEPT;
}

#if IS_ENABLED(CONFIG_IPV6)
static unsigned int ect1_ipv6(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	if ((ipv6_get_dsfield(ipv6_hdr(skb)) & INET_ECN_MASK) != INET_ECN_ECT_0 || !of_prague(skb))
		return NF_ACCEPT;
	if (skb_ensure_writable(skb, skb_network_offset(skb) + sizeof(struct ipv6hdr)))
		return NF_DROP;
	ipv6_change_dsfield(ipv6_hdr(skb), (u8)~INET_ECN_MASK, INET_ECN_ECT_1);
	return NF_ACCEPT;
}
#endif

static const struct nf_hook_ops hooks[] = {
	{ .hook = ect1_ipv4, .pf = NFPROTO_IPV4, .hooknum = NF_INET_LOCAL_OUT, .priority = NF_IP_PRI_FIRST },
#if IS_ENABLED(CONFIG_IPV6)
	{ .hook = ect1_ipv6, .pf = NFPROTO_IPV6, .hooknum = NF_INET_LOCAL_OUT, .priority = NF_IP6_PRI_FIRST },
#endif
};

static int __net_init ect1_in_netns(struct net *net)
{
	return nf_register_net_hooks(net, hooks, ARRAY_SIZE(hooks));
}

static void __net_exit ect1_out_of_netns(struct net *net)
{
	nf_unregister_net_hooks(net, hooks, ARRAY_SIZE(hooks));
}

static struct pernet_operations ect1_netns = { .init = ect1_in_netns, .exit = ect1_out_of_netns };

int prague_ect1_register(void)
{
	return register_pernet_subsys(&ect1_netns);
}

void prague_ect1_unregister(void)
{
	unregister_pernet_subsys(&ect1_netns);
}

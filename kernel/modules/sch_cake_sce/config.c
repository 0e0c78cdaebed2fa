// SPDX-License-Identifier: GPL-2.0
/* Options: read, refused with what is wrong, and shown. */
#include <net/netlink.h>

#include "attributes.h"
#include "cake.h"

const struct cake_config cake_config_default = {
	.rtt_us = 100 * USEC_PER_MSEC,
	.target_us = 5 * USEC_PER_MSEC,
	.diffserv = CAKE_DIFFSERV_DIFFSERV3,
	.isolation = CAKE_FLOW_TRIPLE,
	.split_gso = 1,
};

static const struct netlink_range_validation_signed overhead_range = { .min = -64, .max = 256 };

static const struct nla_policy policy[TCA_CAKE_SCE + 1] = {
	[TCA_CAKE_BASE_RATE64]	 = { .type = NLA_U64 },
	[TCA_CAKE_DIFFSERV_MODE] = NLA_POLICY_MAX(NLA_U32, CAKE_DIFFSERV_MAX - 1),
	[TCA_CAKE_ATM]		 = NLA_POLICY_MAX(NLA_U32, CAKE_ATM_MAX - 1),
	[TCA_CAKE_FLOW_MODE]	 = NLA_POLICY_MAX(NLA_U32, CAKE_FLOW_MAX - 1),
	[TCA_CAKE_OVERHEAD]	 = NLA_POLICY_FULL_RANGE_SIGNED(NLA_S32, &overhead_range),
	[TCA_CAKE_RTT]		 = NLA_POLICY_MIN(NLA_U32, 1),
	[TCA_CAKE_TARGET]	 = NLA_POLICY_MIN(NLA_U32, 1),
	[TCA_CAKE_AUTORATE]	 = NLA_POLICY_MAX(NLA_U32, 1),
	[TCA_CAKE_MEMORY]	 = { .type = NLA_U32 },
	[TCA_CAKE_NAT]		 = NLA_POLICY_MAX(NLA_U32, 1),
	[TCA_CAKE_RAW]		 = { .type = NLA_U32 },
	[TCA_CAKE_WASH]		 = NLA_POLICY_MAX(NLA_U32, 1),
	[TCA_CAKE_MPU]		 = NLA_POLICY_MAX(NLA_U32, 256),
	[TCA_CAKE_INGRESS]	 = NLA_POLICY_MAX(NLA_U32, 1),
	[TCA_CAKE_ACK_FILTER]	 = NLA_POLICY_MAX(NLA_U32, CAKE_ACK_MAX - 1),
	[TCA_CAKE_SPLIT_GSO]	 = NLA_POLICY_MAX(NLA_U32, 1),
	[TCA_CAKE_FWMARK]	 = { .type = NLA_U32 },
	[TCA_CAKE_FWMARK + 1]	 = {
		.type = NLA_REJECT,
		.reject_message = "attribute 19 was an option of the SCE project's cake, which cake_sce does not have",
	},
	[TCA_CAKE_SCE]		 = { .type = NLA_U32 },
};

/* TCA_OPTIONS comes without the flag of nested attributes, which is all that is forgiven. */
static int parse(struct nlattr **tb, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	return __nla_parse(tb, TCA_CAKE_SCE, nla_data(opt), nla_len(opt), policy,
			   NL_VALIDATE_STRICT & ~NL_VALIDATE_NESTED, extack);
}

static void take_framing(struct cake_config *config, struct nlattr **tb)
{
	if (tb[TCA_CAKE_ATM])
		config->cells = nla_get_u32(tb[TCA_CAKE_ATM]);
	if (tb[TCA_CAKE_MPU])
		config->mpu = nla_get_u32(tb[TCA_CAKE_MPU]);
	if (tb[TCA_CAKE_OVERHEAD]) {
		config->overhead = nla_get_s32(tb[TCA_CAKE_OVERHEAD]);
		config->replaces_header = 1;
	}
	if (tb[TCA_CAKE_RAW])
		config->replaces_header = 0;
}

static void take_times(struct cake_config *config, struct nlattr **tb)
{
	if (tb[TCA_CAKE_RTT]) {
		config->rtt_us = nla_get_u32(tb[TCA_CAKE_RTT]);
		config->target_us = max(config->rtt_us / 20, 1U);
	}
	if (tb[TCA_CAKE_TARGET])
		config->target_us = nla_get_u32(tb[TCA_CAKE_TARGET]);
}

/* What the options do not name stays. On an error nothing is changed. */
int cake_config_take(struct cake_config *config, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_CAKE_SCE + 1];
	int err;

	if (!opt)
		return 0;
	err = parse(tb, opt, extack);
	if (err)
		return err;
	if (tb[TCA_CAKE_NAT] && nla_get_u32(tb[TCA_CAKE_NAT])) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_CAKE_NAT],
				    "cake_sce has no nat: it tells hosts apart by the addresses of the packet");
		return -EOPNOTSUPP;
	}
	if (tb[TCA_CAKE_BASE_RATE64])
		config->rate = nla_get_u64(tb[TCA_CAKE_BASE_RATE64]);
	if (tb[TCA_CAKE_AUTORATE])
		config->autorate = nla_get_u32(tb[TCA_CAKE_AUTORATE]);
	if (tb[TCA_CAKE_DIFFSERV_MODE])
		config->diffserv = nla_get_u32(tb[TCA_CAKE_DIFFSERV_MODE]);
	if (tb[TCA_CAKE_FLOW_MODE])
		config->isolation = nla_get_u32(tb[TCA_CAKE_FLOW_MODE]);
	if (tb[TCA_CAKE_MEMORY])
		config->memlimit = nla_get_u32(tb[TCA_CAKE_MEMORY]);
	if (tb[TCA_CAKE_WASH])
		config->wash = nla_get_u32(tb[TCA_CAKE_WASH]);
	if (tb[TCA_CAKE_INGRESS])
		config->ingress = nla_get_u32(tb[TCA_CAKE_INGRESS]);
	if (tb[TCA_CAKE_ACK_FILTER])
		config->ack_filter = nla_get_u32(tb[TCA_CAKE_ACK_FILTER]);
	if (tb[TCA_CAKE_SPLIT_GSO])
		config->split_gso = nla_get_u32(tb[TCA_CAKE_SPLIT_GSO]);
	if (tb[TCA_CAKE_FWMARK])
		config->fwmark = nla_get_u32(tb[TCA_CAKE_FWMARK]);
	if (tb[TCA_CAKE_SCE])
		config->sce_thresh = nla_get_u32(tb[TCA_CAKE_SCE]);
	take_framing(config, tb);
	take_times(config, tb);
	return 0;
}

int cake_config_dump(const struct cake_config *config, struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_OPTIONS);

	if (!nest)
		return -EMSGSIZE;
	if (nla_put_u64_64bit(skb, TCA_CAKE_BASE_RATE64, config->rate, TCA_CAKE_PAD) ||
	    nla_put_u32(skb, TCA_CAKE_FLOW_MODE, config->isolation) ||
	    nla_put_u32(skb, TCA_CAKE_DIFFSERV_MODE, config->diffserv) ||
	    nla_put_u32(skb, TCA_CAKE_RTT, config->rtt_us) ||
	    nla_put_u32(skb, TCA_CAKE_TARGET, config->target_us) ||
	    nla_put_u32(skb, TCA_CAKE_MEMORY, config->memlimit) ||
	    nla_put_u32(skb, TCA_CAKE_AUTORATE, config->autorate) ||
	    nla_put_u32(skb, TCA_CAKE_NAT, 0) ||
	    nla_put_u32(skb, TCA_CAKE_WASH, config->wash) ||
	    nla_put_u32(skb, TCA_CAKE_INGRESS, config->ingress) ||
	    nla_put_u32(skb, TCA_CAKE_ACK_FILTER, config->ack_filter) ||
	    nla_put_u32(skb, TCA_CAKE_SPLIT_GSO, config->split_gso) ||
	    nla_put_s32(skb, TCA_CAKE_OVERHEAD, config->overhead) ||
	    (!config->replaces_header && nla_put_u32(skb, TCA_CAKE_RAW, 0)) ||
	    nla_put_u32(skb, TCA_CAKE_ATM, config->cells) ||
	    nla_put_u32(skb, TCA_CAKE_MPU, config->mpu) ||
	    nla_put_u32(skb, TCA_CAKE_FWMARK, config->fwmark) ||
	    nla_put_u32(skb, TCA_CAKE_SCE, config->sce_thresh)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

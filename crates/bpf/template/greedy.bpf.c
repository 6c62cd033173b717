// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * A toy that never backs off: losses do not reduce its window, which doubles each round trip. It is
 * here to see what `airpath judge` says of it. Never use it on a network that is not emulated.
 */
#include "tcp_congestion.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

SEC("struct_ops")
__u32 greedy_ssthresh(__u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];

	return most(tp->snd_cwnd, 2);
}

SEC("struct_ops")
void greedy_cong_avoid(__u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];

	if (cwnd_limited(tp))
		tp->snd_cwnd = least(tp->snd_cwnd + (__u32)ctx[2], tp->snd_cwnd_clamp);
}

SEC("struct_ops")
__u32 greedy_undo_cwnd(__u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];

	return most(tp->snd_cwnd, tp->prior_cwnd);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops greedy = {
	.name = "toy_greedy",
	.ssthresh = (void *)greedy_ssthresh,
	.cong_avoid = (void *)greedy_cong_avoid,
	.undo_cwnd = (void *)greedy_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
};

/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What a congestion control in BPF needs of the kernel's types. Add members that you read, with the
 * kernel's names and types: offsets come from the BTF of the kernel that loads the object (CO-RE),
 * so neither the order nor what is left out matters.
 *
 * The kernel lets a congestion control write snd_cwnd, snd_cwnd_cnt, snd_cwnd_stamp, snd_ssthresh,
 * app_limited, ecn_flags, sk_pacing_rate, sk_pacing_status and icsk_ca_priv, and nothing else.
 */
#pragma once

typedef unsigned char __u8;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef _Bool bool;

#define SEC(name) __attribute__((section(name), used))
#define __always_inline inline __attribute__((always_inline))

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
	unsigned long sk_pacing_rate; /* bytes per second */
	__u32 sk_pacing_status;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u64 icsk_ca_priv[13]; /* the congestion control's own state, zero at first */
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 snd_cwnd; /* segments, as are all windows here */
	__u32 snd_cwnd_clamp;
	__u32 snd_ssthresh;
	__u32 prior_cwnd; /* cwnd before the last reduction */
	__u32 srtt_us; /* eight times the smoothed RTT in microseconds */
	__u32 max_packets_out;
	__u32 mss_cache;
	__u64 tcp_mstamp; /* the time of this event in microseconds */
	__u8 is_cwnd_limited : 1;
};

struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us; /* below 0: there is none */
	__u32 in_flight;
};

#pragma clang attribute pop

#define TCP_CA_NAME_MAX 16
#define TCP_CONG_NON_RESTRICTED 1

/* enum tcp_ca_state and enum tcp_ca_event (uapi/linux/tcp.h, net/tcp.h) */
#define TCP_CA_LOSS 4
#define CA_EVENT_TX_START 0

/*
 * Callbacks get their arguments as an array of 64 bits each. The first is the connection:
 *   struct tcp_sock *tp = (void *)ctx[0];
 * ssthresh, undo_cwnd, and cong_avoid or cong_control are required. Add others that you use; an
 * argument is documented at the member.
 */
struct tcp_congestion_ops {
	char name[TCP_CA_NAME_MAX]; /* at most 15 letters, digits, `_` and `.` */
	void (*init)(__u64 *ctx);
	/* What ssthresh will be; called once for each congestion event. */
	__u32 (*ssthresh)(__u64 *ctx);
	/* ctx[2]: newly acknowledged segments. Not called during recovery. */
	void (*cong_avoid)(__u64 *ctx);
	/* ctx[1]: const struct ack_sample *. Called for every acknowledgement. */
	void (*pkts_acked)(__u64 *ctx);
	/* ctx[1]: the state that begins. */
	void (*set_state)(__u64 *ctx);
	/* ctx[1]: CA_EVENT_... */
	void (*cwnd_event)(__u64 *ctx);
	/* What cwnd will be: the reduction was for nothing. */
	__u32 (*undo_cwnd)(__u64 *ctx);
	__u32 flags;
};

static __always_inline __u32 least(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

static __always_inline __u32 most(__u32 a, __u32 b)
{
	return a > b ? a : b;
}

static __always_inline bool in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* A bit-field has no address. These relocations are its bytes, and its place in them. */
static __always_inline bool is_cwnd_limited_bit(const struct tcp_sock *tp)
{
	const void *bytes = (const void *)tp +
			    __builtin_preserve_field_info(tp->is_cwnd_limited, 0 /* offset */);
	__u64 value = *(const __u8 *)bytes;

	if (__builtin_preserve_field_info(tp->is_cwnd_limited, 1 /* size */) != 1)
		return 1;
	value <<= __builtin_preserve_field_info(tp->is_cwnd_limited, 4 /* left shift */);
	return value >> __builtin_preserve_field_info(tp->is_cwnd_limited, 5 /* right shift */);
}

/* Whether cwnd is what limits the sender; in slow start, if more than half was in use, so that the
 * window can double while pacing leaves the rest (RFC 7661 1). */
static __always_inline bool cwnd_limited(const struct tcp_sock *tp)
{
	if (is_cwnd_limited_bit(tp))
		return 1;
	return in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* Slow start (RFC 5681 3.1) with all that is acknowledged (RFC 3465, without its limit L: the
 * kernel paces). Returns the segments that are left for congestion avoidance. */
static __always_inline __u32 slow_start(struct tcp_sock *tp, __u32 acked)
{
	__u32 room = tp->snd_ssthresh - tp->snd_cwnd;
	__u32 step = least(acked, room);

	tp->snd_cwnd = least(tp->snd_cwnd + step, tp->snd_cwnd_clamp);
	return acked - step;
}

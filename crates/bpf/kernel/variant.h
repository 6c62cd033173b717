/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* The state of airpath's congestion controls, and the HyStart rules that the observer needs too. */
#pragma once

/* Reasons for the end of slow start; the Rust side uses the same numbers. */
#define FOUND_NOTHING 0
#define FOUND_SOMETHING 1 /* tcp_cubic does not say what */
#define FOUND_ACK_TRAIN 2
#define FOUND_DELAY 3
#define FOUND_FALLING_MINIMUM 4
#define FOUND_CSS 5

struct found {
	__u32 magic;
	__u32 reason;
	/* Microseconds: smallest RTT of the connection, or of the previous round; of the round. */
	__u32 base_rtt;
	__u32 round_rtt;
};

#define FOUND_MAGIC 0x61697270 /* "airp" */

/* A generation of slow start: HystartConfig in crates/tcp. */
#define TRAIN_HALF 1	 /* a train may last half of the smallest RTT */
#define TRAIN_CUSHIONED 2 /* the smallest RTT and a cushion; half of both without pacing */
#define DELAY 4
#define FALLING_MINIMUM 8
#define MILLISECONDS 16
#define ROUND_PROMPT 32
#define ROUND_FROM_LOW_WINDOW 64
#define PLUS_PLUS 128

struct state {
	struct found found;
	__u32 generation;
	/* CUBIC; windows in segments, 0: none */
	__u32 w_max;
	__u32 credit;
	__u32 origin;
	__u64 epoch_us; /* 0: no congestion avoidance stage */
	__u32 k_ms;
	__u32 w_est;
	__u32 w_est_credit;
	__u32 pace;
	__u32 pace_us;
	__u32 pace_cwnd;
	/* HyStart; times in microseconds, 0: none */
	__u32 min_rtt;
	__u32 round_start;
	__u32 round_last_ack;
	__u32 round_end;
	__u32 round_rtt;
	__u32 round_min_rtt; /* the connection's when the samples were complete */
	/* HyStart++ */
	__u32 last_round_rtt;
	__u32 baseline_rtt;
	__u8 samples;
	__u8 css_rounds;
	__u8 css;
	__u8 done;
};

_Static_assert(sizeof(struct state) <= 104, "ICSK_CA_PRIV_SIZE");

/* RTT samples that determine a round's RTT. */
#define SAMPLES 8

static __always_inline bool paced(struct tcp_sock *tp)
{
	return tp->inet_conn.icsk_inet.sk.sk_pacing_status != 0;
}

/* Time that segmentation offload may add: four bursts at two windows per smoothed RTT. */
static __always_inline __u32 cushion(struct tcp_sock *tp)
{
	__u64 bytes_per_rtt = 2ULL * tp->snd_cwnd * tp->mss_cache;
	__u64 us = 262144ULL * (tp->srtt_us >> 3) / (bytes_per_rtt | !bytes_per_rtt);

	return us < 1000 ? us : 1000;
}

/* Length above which an ACK train ends slow start. */
static __always_inline __u32 longest_train(struct tcp_sock *tp, __u32 generation, __u32 min_rtt)
{
	__u32 longest;

	if (generation & TRAIN_HALF)
		longest = min_rtt / 2;
	else if (paced(tp))
		longest = min_rtt + cushion(tp);
	else
		longest = (min_rtt + cushion(tp)) / 2;
	if (generation & MILLISECONDS)
		longest = longest / 1000 * 1000;
	return longest;
}

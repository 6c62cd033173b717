/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* What the watch reads of our own congestion controls: the beginning of their private state. */
#pragma once

/* Reasons for the end of slow start; the Rust side knows the numbers. */
#define FOUND_NOTHING 0
#define FOUND_SOMETHING 1 /* tcp_cubic does not say what */
#define FOUND_ACK_TRAIN 2
#define FOUND_DELAY 3
#define FOUND_FALLING_MINIMUM 4
#define FOUND_CSS 5

struct found {
	__u32 magic;
	__u32 reason;
	/* Microseconds: the connection's smallest RTT, or the round before's; the round's. */
	__u32 base_rtt;
	__u32 round_rtt;
};

#define FOUND_MAGIC 0x61697270 /* "airp" */

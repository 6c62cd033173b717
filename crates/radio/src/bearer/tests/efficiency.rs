//! Tests the goodput of a full buffer over the transport block size against the closed form.

use super::*;

const SIZE: u32 = 1_500;
const BLOCKS: u32 = 2_000;

/// Packets delivered by `BLOCKS` blocks of `size` bytes, with `header_bytes` of PDCP.
fn delivered(rlc: RlcConfig, header_bytes: u32, size: u32) -> u32 {
    let pdcp = PdcpConfig { header_bytes, ..PDCP };
    let mut it = Script::with(OneWayConfig { rlc, pdcp, buffer: UNLIMITED });
    let mut block = TransportBlock::new();
    let mut status = Status::default();
    for _ in 0..BLOCKS {
        while it.one_way.buffered_bytes() < 2 * u64::from(size) + 4_000 {
            it.packets(&[SIZE]);
        }
        block.clear();
        it.one_way.fill(it.now, size, &mut block);
        it.arrives(&block);
        it.one_way.build_status(it.now, 100, &mut status);
        it.one_way.on_status(it.now, &status);
    }
    it.delivered.len() as u32
}

const POLLING: ArqConfig = ArqConfig { poll_pdu: Some(16), ..ARQ };

#[test]
fn nr_blocks_of_whole_packets() {
    // MAC 3; AM 2 or 3; UM 1; PDCP 2 or 3
    for (rlc, header, pdcp) in [
        (nr_am(NrAmSn::Bits12, POLLING), 2, 2),
        (nr_am(NrAmSn::Bits18, POLLING), 3, 3),
        (nr_um(NrUmSn::Bits6), 1, 2),
        (nr_um(NrUmSn::Bits12), 1, 3),
    ] {
        for packets in [1, 7, 40] {
            let size = packets * (3 + header + pdcp + SIZE);
            assert_eq!(delivered(rlc, pdcp, size), packets * BLOCKS);
        }
    }
}

#[test]
fn nr_blocks_of_any_size() {
    // MAC 3, or 2 up to 255 bytes; RLC 3, and 2 more for SO; PDCP 3. A cut costs a PDU more.
    for size in [300, 1_000, 1_777, 4_321, 30_003] {
        let obtained = delivered(nr_am(NrAmSn::Bits18, POLLING), 3, size);
        // Check by counting where in its packet each block ends.
        let (sdu, mut at, mut whole) = (SIZE + 3, 0, 0);
        for _ in 0..BLOCKS {
            let mut room = size;
            loop {
                let header = if at == 0 { 3 } else { 5 };
                let cost = |data: u32| data + header + if data + header < 256 { 2 } else { 3 };
                let Some(data) = (1..=sdu - at).rev().find(|&data| cost(data) <= room) else {
                    break;
                };
                room -= cost(data);
                at += data;
                if at == sdu {
                    (at, whole) = (0, whole + 1);
                }
            }
        }
        assert_eq!(obtained, whole, "{size}");
        // Check against the closed form, within the effect of short pieces and padding.
        let expected = f64::from(BLOCKS) * (f64::from(size) - 8.0) / f64::from(SIZE + 9);
        let slack = f64::from(BLOCKS) * 9.0 / f64::from(SIZE + 9) + 1.0;
        assert!((f64::from(obtained) - expected).abs() <= slack, "{size}: {obtained} {expected}");
    }
}

#[test]
fn lte_blocks_of_whole_packets() {
    // MAC 1; fixed 2; an LI of 12 bits per packet except one; PDCP 2
    for packets in [1u32, 2, 5, 6] {
        let lis = (12 * (packets - 1)).div_ceil(8);
        let size = 1 + 2 + lis + packets * (2 + SIZE);
        assert_eq!(delivered(lte_am(POLLING), 2, size), packets * BLOCKS);
        let size = size - 1;
        assert_eq!(delivered(lte_um(LteUmSn::Bits5), 2, size), packets * BLOCKS);
    }
}

#[test]
fn lte_blocks_of_any_size() {
    // A block is always full, and carries elements with 12 bits of LI except for the last.
    for size in [300, 1_777, 4_587, 9_422] {
        let obtained = delivered(lte_am(POLLING), 2, size);
        // Check by counting the bytes of the stream per block, from where the last one ended.
        let (sdu, mut at, mut whole) = (SIZE + 2, 0, 0);
        for _ in 0..BLOCKS {
            let mut room = size - 1 - 2;
            let mut bits = 0;
            loop {
                let fits = (room - u32::div_ceil(bits, 8)).min(sdu - at);
                at += fits;
                room -= fits;
                if at == sdu {
                    (at, whole) = (0, whole + 1);
                }
                bits += 12;
                if room <= u32::div_ceil(bits, 8) {
                    break;
                }
            }
        }
        assert_eq!(obtained, whole, "{size}");
    }
}

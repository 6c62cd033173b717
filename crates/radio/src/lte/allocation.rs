//! How much one pair of resource blocks (a subframe of 12 subcarriers, normal cyclic prefix) holds,
//! and how many pairs an uplink allocation may have.

/// Antenna ports with cell-specific reference signals (TS 36.211 6.10.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CellPorts {
    /// Port 0.
    One,
    /// Ports 0 and 1.
    Two,
    /// Ports 0 to 3.
    Four,
}

/// Resource elements of a PDSCH in a pair of resource blocks, if control takes `control_symbols`, 1
/// to 4. Synchronisation signals, PBCH and CSI-RS are not subtracted.
// TS 36.211 6.10.1.2: symbols 0 and 4 of a slot for ports 0 and 1, symbol 1 for ports 2 and 3
pub fn downlink_elements(control_symbols: u32, ports: CellPorts) -> u32 {
    let references = match ports {
        CellPorts::One => 6,
        CellPorts::Two => 12,
        // Symbol 1 of the first slot is control if there are two or more control symbols.
        CellPorts::Four if control_symbols < 2 => 20,
        CellPorts::Four => 16,
    };
    12 * 14u32.saturating_sub(control_symbols) - references
}

/// Resource elements of a PUSCH in a pair of resource blocks: 12 symbols, because one of each
/// slot's 7 is DM-RS (TS 36.211 5.5.2.1). In a subframe with sounding the last symbol is lost, too.
pub const UPLINK_ELEMENTS: u32 = 12 * 12;

/// The most blocks that an uplink allocation of at most `blocks` can have: DFT precoding requires
/// 2^a 3^b 5^c.
// TS 36.211 5.3.3
pub fn uplink_blocks(blocks: u32) -> u32 {
    (1..=blocks).rev().find(|&count| is_5_smooth(count)).unwrap_or(0)
}

fn is_5_smooth(mut count: u32) -> bool {
    for factor in [2, 3, 5] {
        while count.is_multiple_of(factor) {
            count /= factor;
        }
    }
    count == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downlink_elements_leave_out_control_and_reference_signals() {
        // 3 control symbols and 2 ports: the 120 elements for which the TBS table is made
        assert_eq!(downlink_elements(3, CellPorts::Two), 120);
        assert_eq!(downlink_elements(1, CellPorts::One), 150);
        assert_eq!(downlink_elements(1, CellPorts::Four), 136);
        assert_eq!(downlink_elements(2, CellPorts::Four), 128);
    }

    #[test]
    fn uplink_allocations_are_5_smooth() {
        let found = [0, 1, 7, 11, 50, 74, 97, 100].map(uplink_blocks);
        assert_eq!(found, [0, 1, 6, 10, 50, 72, 96, 100]);
    }
}

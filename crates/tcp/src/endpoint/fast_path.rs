//! Fast paths of an endpoint: what the rules come to while nothing has changed but what was sent.

use airpath_base::{FlowId, Instant, Memo, Packet, Payload, Segment};

use super::{Endpoint, Flags, Receiver, Repeated, Sender, State, blank};
use crate::event::SendLimit;
use crate::sender::{Ahead, Piece};

/// Processes the acknowledgement in `segment`; `window` is its window field, scaled.
#[inline(always)]
pub(super) fn on_ack(
    sender: &mut Memo<Sender, Ahead>,
    now: Instant,
    segment: &Segment,
    window: u64,
) {
    if sender.known() == Some(Ahead::Silent) && sender.is_news_of_window_only(segment) {
        sender.aside().take_window(segment, window);
    } else {
        sender.touch().on_ack(now, segment, window);
    }
}

/// The next piece of the stream to send at `now`, if the windows allow one.
#[inline(always)]
pub(super) fn poll(sender: &mut Memo<Sender, Ahead>, now: Instant) -> Option<Piece> {
    match sender.known() {
        None => sender.change(|sender| sender.poll(now)),
        Some(Ahead::Silent) => None,
        Some(Ahead::Run(0)) => sender.change(|sender| sender.stop(now, SendLimit::Cwnd)),
        Some(Ahead::Run(left)) => Some(poll_run(sender, now, left)),
    }
}

/// The next piece of a run, of which `left` are left.
#[inline(always)]
fn poll_run(sender: &mut Memo<Sender, Ahead>, now: Instant, left: u32) -> Piece {
    debug_assert!(sender.allows_run(left));
    sender.change(|sender| (sender.send_full(now), Some(Ahead::Run(left - 1))))
}

/// When the sender's next timer runs out.
#[inline(always)]
pub(super) fn sender_timer(sender: &Memo<Sender, Ahead>) -> Option<Instant> {
    match sender.known() {
        Some(Ahead::Silent) => None,
        _ => sender.timer(),
    }
}

/// When the receiver's next timer runs out: none runs while acknowledgements repeat the last one.
#[inline(always)]
pub(super) fn receiver_timer(receiver: &Memo<Receiver, Repeated>) -> Option<Instant> {
    match receiver.known() {
        Some(_) => None,
        None => receiver.timer(),
    }
}

/// The part of an acknowledgement that the next one may repeat.
#[inline(always)]
pub(super) fn acknowledge(receiver: &mut Memo<Receiver, Repeated>, now: Instant) -> Repeated {
    receiver.aside().acks_sent += 1;
    match receiver.known() {
        Some(repeated) => repeated,
        None => receiver.change(|receiver| receiver.acknowledge(now)),
    }
}

impl Endpoint {
    /// Whether nothing was ever offered here: only acknowledgements can be sent.
    #[inline(always)]
    pub(super) fn only_acknowledges(&self) -> bool {
        self.state == State::Established && self.sender.known() == Some(Ahead::Silent)
    }

    /// [`transmit`](Self::transmit) of an end that only acknowledges.
    #[inline(never)]
    pub(super) fn transmit_ack(
        &mut self,
        now: Instant,
        flow: FlowId,
        mut emit: impl FnMut(&Packet),
    ) {
        let mut packet = blank(flow);
        while let Payload::Tcp(segment) = &mut packet.payload
            && self.receiver.wants_ack()
        {
            self.write(now, segment, (self.sender.stream.nxt(), 0, Flags::NONE, false));
            packet.size = self.wire_size(segment);
            emit(&packet);
        }
    }

    /// Writes the next segment, where it differs from `segment`, which was written at `now`, only in its place
    /// in the stream and its flags: its size and codepoint are the same. False: that is not known.
    #[inline(always)]
    pub(super) fn write_following(&mut self, now: Instant, segment: &mut Segment) -> bool {
        if !segment.sack.is_empty() || self.receiver.has_blocks() {
            return false;
        }
        let Some(Repeated { flags, .. }) = self.receiver.known() else { return false };
        let Some(Ahead::Run(left @ 1..)) = self.sender.known() else { return false };
        let piece = poll_run(&mut self.sender, now, left);
        self.receiver.aside().acks_sent += 1;
        segment.seq = piece.seq;
        segment.flags = piece.flags().with(flags);
        true
    }
}

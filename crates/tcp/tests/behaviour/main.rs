//! Tests of [`airpath_tcp::Endpoint`] as scripts: a hand-made peer on the other side, time as an
//! argument. `two_ends` joins two endpoints by a random channel instead.

mod congestion;
mod delayed_ack;
mod ecn;
mod flow_control;
mod handshake;
mod leaving;
mod rack;
mod receive_window;
mod receiver;
mod recovery;
mod reduction;
mod script;
mod slow_start;
mod timer;
mod two_ends;
mod undo;

//! How to extend airpath from outside: a congestion control and a stage, using only public traits.
//!
//! - [`Vegas`] implements [`CongestionControl`](airpath_tcp::CongestionControl): TCP Vegas, which
//!   keeps a few segments in the queue instead of filling it.
//! - [`Outage`] implements [`Path`](airpath_path::Path): a link that is down at regular times, as
//!   a satellite's beam is while it moves.
//! - [`download`] runs a connection over any two paths, with any congestion control.
//!
//! ```
//! use airpath_base::Duration;
//! use airpath_examples::{Outage, Vegas, download, link};
//! use airpath_tcp::EndpointConfig;
//!
//! let path = link(20, Duration::from_millis(20), 500);
//! let path = Outage::new(path, Duration::from_secs(5), Duration::from_millis(300));
//! let config = EndpointConfig::default();
//! let result = download(&config, Some(Box::new(Vegas::default())), path, Duration::from_secs(10));
//! assert!(result.goodput_mbps > 10.0);
//! ```

mod connection;
mod outage;
mod vegas;

pub use connection::{Download, download, link};
pub use outage::Outage;
pub use vegas::Vegas;

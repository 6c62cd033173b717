//! Empty: only its dependency matters.

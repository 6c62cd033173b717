//! Scripts for each rule of TS 38.321 5.7, and a comparison of every slot with the text of the
//! clause.

mod reference;
mod scripts;

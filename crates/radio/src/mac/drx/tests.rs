//! Scripts for each rule of TS 38.321 5.7, and every slot compared with the clause's own text.

mod reference;
mod scripts;

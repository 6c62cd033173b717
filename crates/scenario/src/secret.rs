//! Secrets of a scenario: where they are, what a run writes in their place, and how to redact a
//! text.

use crate::digest::sha256_hex;
use crate::spec::{Privacy, UE};

/// Prefix of a hash that stands in the place of a secret.
const PREFIX: &str = "sha256:";

/// What a redacted text shows in the place of a secret.
const REDACTED: &str = "…";

/// Fewest hexadecimal digits in a row that are taken for a key, which has 32: it may be cut or
/// mistyped.
const LEAST_DIGITS: usize = 24;

/// Names of the keys of `[[radio.ue]]` that are secret.
fn secret_keys() -> impl Iterator<Item = &'static str> {
    let keys = UE.groups.iter().flat_map(|group| group.keys);
    keys.filter(|key| key.privacy == Privacy::Secret).map(|key| key.name)
}

/// The hash that stands for a secret: SHA-256 of the key's name, the IMSI and the value, so that
/// equal values of two UEs get different hashes. A hash is returned as it is.
pub fn secret_hash(key: &str, imsi: &str, value: &str) -> String {
    if is_hash(value) {
        return value.to_owned();
    }
    let text = format!("airpath {key} {imsi} {}", value.to_ascii_lowercase());
    format!("{PREFIX}{}", sha256_hex(text.as_bytes()))
}

/// The text with `…` for each secret, however it is spelt. The text may be a setting, a command
/// line, a message, a scenario or a campaign; without secrets it stays as it is.
///
/// Two things are secret: a value assigned to a secret key, unless it is a hash or a dotted path (a
/// campaign's `key` names what is varied); and a run of hexadecimal digits as long as a key,
/// whatever it is called, unless it is a hash or part of a file name. TOML's escapes are decoded
/// first.
///
/// ```
/// use airpath_scenario::redacted;
///
/// assert_eq!(redacted("--set=radio.ue.0.key=abc"), "--set=radio.ue.0.key=…");
/// assert_eq!(redacted("radio.ue=[{imsi = \"1\", \"opc\" = 'ab c'}]"), "radio.ue=[{imsi = \"1\", \"opc\" = …}]");
/// assert_eq!(redacted("ki 465B5CE8B199B49FAA5F0A2EE238A6BC"), "ki …");
/// assert_eq!(redacted("key = \"flow.0.congestion\""), "key = \"flow.0.congestion\"");
/// ```
pub fn redacted(text: &str) -> String {
    let plain = unescaped(text);
    let names: Vec<_> = secret_keys().collect();
    let mut shown = String::with_capacity(plain.len());
    let (mut at, mut found) = (0, false);
    while let Some(char) = plain[at..].chars().next() {
        let (before, rest) = plain.split_at(at);
        let secret = assigned(&names, before, rest).or_else(|| digits(before, rest));
        let Some((kept, hidden)) = secret else {
            shown.push(char);
            at += char.len_utf8();
            continue;
        };
        shown.push_str(&rest[..kept]);
        shown.push_str(REDACTED);
        at += kept + hidden;
        found = true;
    }
    if found { shown } else { text.to_owned() }
}

/// How many bytes to keep and to hide, if `rest` begins with a secret key and its value.
fn assigned(names: &[&str], before: &str, rest: &str) -> Option<(usize, usize)> {
    let is_bare = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    if before.ends_with(is_bare) {
        return None;
    }
    let name = names.iter().find(|name| rest.starts_with(**name))?;
    let value = rest[name.len()..]
        .trim_start_matches(['"', '\'', '\\'])
        .trim_start()
        .strip_prefix('=')?
        .trim_start_matches([' ', '\t']);
    let length = value_length(value);
    let shown = value[..length].trim_matches(['"', '\'', '\\']);
    // Groups of digits with dots are not a path: flow, path and radio have letters that are not
    // hexadecimal digits.
    let is_path = shown.split_once('.').is_some_and(|(first, _)| {
        first.chars().any(|char| char.is_ascii_lowercase() && !char.is_ascii_hexdigit())
            && shown.split('.').all(|part| !part.is_empty() && part.chars().all(is_bare))
    });
    let is_list = value.starts_with('[');
    let hide =
        length > 0 && !is_hash(shown) && !is_path && !is_list && !shown.starts_with(REDACTED);
    hide.then_some((rest.len() - value.len(), length))
}

/// The length of a value, quotes included.
fn value_length(value: &str) -> usize {
    // A setting inside a TOML or JSON string has escaped quotes.
    let escapes = value.len() - value.trim_start_matches('\\').len();
    if let Some(quote) = value[escapes..].chars().next().filter(|char| matches!(char, '"' | '\'')) {
        let triple = quote.to_string().repeat(3);
        let open = escapes + if value[escapes..].starts_with(&triple) { 3 } else { 1 };
        let inside = &value[open..];
        return match inside.find(&value[..open]) {
            Some(close) => 2 * open + close,
            None => open + inside.find('\n').unwrap_or(inside.len()),
        };
    }
    let word = |text: &str| {
        let ends = |char: char| char.is_whitespace() || ",]}\"'".contains(char);
        text.find(ends).unwrap_or(text.len())
    };
    let mut length = word(value);
    // Digits are often written in groups.
    loop {
        let group = value[length..].trim_start_matches(' ');
        let digits = word(group);
        if digits == 0 || !group[..digits].bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return length;
        }
        length = value.len() - group.len() + digits;
    }
}

/// How many bytes to keep and to hide, if `rest` begins with digits that look like a key.
fn digits(before: &str, rest: &str) -> Option<(usize, usize)> {
    let of_a_file = |char| matches!(char, '_' | '-' | '/');
    let number = before.strip_suffix("0x").or(before.strip_suffix("0X")).unwrap_or(before);
    let in_word = |char: char| char.is_ascii_alphanumeric() || char == '/';
    if number.ends_with(in_word) || number.ends_with(PREFIX) {
        return None;
    }
    let length = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
    let after = &rest[length..];
    let has_ending = after
        .strip_prefix('.')
        .is_some_and(|end| end.starts_with(|char: char| char.is_ascii_alphanumeric()));
    // In a message, decimal digits alone are a number.
    let is_number = rest[..length].bytes().all(|digit| digit.is_ascii_digit());
    let hide = length >= LEAST_DIGITS && !is_number && !has_ending;
    (hide && !after.starts_with(of_a_file)).then_some((0, length))
}

/// The text with escapes of letters and digits decoded and escaped line ends removed.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        // A string inside a string has several backslashes.
        let escaped = rest[at..].trim_start_matches('\\');
        let length = match escaped.bytes().next() {
            Some(b'x') => 2,
            Some(b'u') => 4,
            Some(b'U') => 8,
            _ => 0,
        };
        let code = escaped.get(1..=length).filter(|_| length > 0);
        let char = code.and_then(|code| char::from_u32(u32::from_str_radix(code, 16).ok()?));
        rest = if let Some(char) = char.filter(char::is_ascii_alphanumeric) {
            plain.push(char);
            &escaped[1 + length..]
        } else if escaped.starts_with(['\n', '\r']) {
            escaped.trim_start()
        } else {
            plain.push_str(&rest[at..rest.len() - escaped.len()]);
            escaped
        };
    }
    plain + rest
}

/// Whether a value is a hash and not a secret.
pub(crate) fn is_hash(value: &str) -> bool {
    value.strip_prefix(PREFIX).is_some_and(|hash| {
        hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HASH: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "",
            "key",
            "key =",
            "a trace \\u00e9 in C:\\new",
            "--anonymise-key=FILE core.keys=usims hockey=1",
            "key = [\"flow.0.congestion\", \"flow.1.congestion\"]",
            &format!("radio.ue.0.key = \"{HASH}\""),
            HASH,
            "/data/465b5ce8b199b49faa5f0a2ee238a6bc/run",
            "465b5ce8b199b49faa5f0a2ee238a6bc.down",
            "the run 465b5ce8b199",
            "--set x: expects KEY=VALUE",
            "`bytes` is 999999999999999999999999999999",
        ] {
            assert_eq!(redacted(text), text);
        }
    }

    #[test]
    fn a_message_goes_on_after_a_secret() {
        assert_eq!(
            redacted("--set radio.ue.0.key='465b 5ce8': `key` must be 32 hexadecimal digits"),
            "--set radio.ue.0.key=…: `key` must be 32 hexadecimal digits"
        );
        assert_eq!(redacted("radio.ue.0.key=46 5b 5c run.seed=1"), "radio.ue.0.key=… run.seed=1");
        assert_eq!(
            redacted("ki = 465b5ce8b199b49faa5f0a2ee238a6bc\\\n run.seed=1"),
            "ki = …run.seed=1"
        );
        assert_eq!(
            redacted("set = [\"radio.ue.0.key=\\\"46\\\"\", 1]"),
            "set = [\"radio.ue.0.key=…\", 1]"
        );
        assert_eq!(redacted("key = \"\"\"46\n5b\"\"\" # K"), "key = … # K");
        assert_eq!(redacted("key=\"46"), "key=…");
        assert_eq!(redacted("key=465b.5ce8"), "key=…");
    }

    /// A hexadecimal digit as TOML may spell it in a string.
    fn spelled() -> impl Strategy<Value = (char, String)> {
        (prop::char::ranges(vec!['0'..='9', 'a'..='f', 'A'..='F'].into()), 0..8_u8).prop_map(
            |(digit, how)| {
                let code = digit as u32;
                let text = match how {
                    0 => format!("\\u{code:04x}"),
                    1 => format!("\\U{code:08X}"),
                    2 => format!("{digit}\\\n  "),
                    _ => digit.to_string(),
                };
                (digit, text)
            },
        )
    }

    proptest! {
        /// Redaction leaves no spelling of a key, whatever surrounds it.
        #[test]
        fn no_key_is_left(
            key in prop::collection::vec(spelled(), 32),
            before in prop::sample::select(vec![
                "", "--set=radio.ue.0.key=", "radio.\"ue\".0.'key' = ", "radio.ue=[{imsi=\"1\", key=",
                "ki = ", "{\"op\": ", "set = [\"radio.ue.0.opc=\\", "--key ", "[{\"k\\u0065y\" = ", "(",
            ]),
            quote in prop::sample::select(vec!["", "\"", "'", "\"\"\"", "\\\""]),
            after in prop::sample::select(vec!["", "}]", " run.seed=1", ".", ": it is wrong", "\n"]),
        ) {
            let plain: String = key.iter().map(|&(digit, _)| digit).collect();
            let spelled: String = key.iter().map(|(_, text)| text.as_str()).collect();
            let text = format!("{before}{quote}{spelled}{quote}{after}");
            let shown = redacted(&text);
            let left = unescaped(&shown);
            prop_assert!(!left.contains(&plain[..LEAST_DIGITS]), "{text:?} is shown as {shown:?}");
            prop_assert!(shown.contains(REDACTED));
            prop_assert_eq!(redacted(&shown), shown.clone());
        }

        #[test]
        fn any_text_is_taken(text in any::<String>()) {
            let _ = redacted(&text);
        }
    }
}

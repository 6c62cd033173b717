//! Exact conversion between decimal fractions and scaled integers. No binary fraction lies in
//! between, so `0.35` Mb/s is 350,000 b/s and every time is the nanosecond that was written.

/// Why a decimal number does not fit a scaled integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// Less than zero.
    Negative,
    /// 2^64 or more after scaling.
    TooLarge,
    /// Not finite, or not a number.
    NotANumber,
}

/// `text` times 10^`power`, rounded half up. `text` is a TOML number in decimal, without
/// underscores.
pub(crate) fn scaled(text: &str, power: u32) -> Result<u64, Misfit> {
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], exponent(&unsigned[at + 1..])?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err(Misfit::NotANumber);
    }
    let digits: String = [whole, fraction].concat();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Misfit::NotANumber);
    }
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Ok(0);
    }
    if negative {
        return Err(Misfit::Negative);
    }
    let shift = exponent + i64::from(power) - fraction.len() as i64;
    round(digits, shift)
}

/// `value` divided by 10^`power`, without trailing zeros.
pub(crate) fn unscaled(value: u64, power: u32) -> String {
    let unit = 10_u64.pow(power);
    let (whole, rest) = (value / unit, value % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let fraction = format!("{rest:0width$}", width = power as usize);
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

fn exponent(text: &str) -> Result<i64, Misfit> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Misfit::NotANumber);
    }
    // Far more than any u64 needs, and far from overflowing an i64.
    let size = digits.parse().unwrap_or(i64::from(u32::MAX)).min(i64::from(u32::MAX));
    Ok(if text.starts_with('-') { -size } else { size })
}

/// `digits` (no leading zero, not empty) times 10^`shift`, rounded half up.
fn round(digits: &str, shift: i64) -> Result<u64, Misfit> {
    // 2^64 has 20 digits.
    let length = digits.len() as i64 + shift;
    if length > 20 {
        return Err(Misfit::TooLarge);
    }
    if length < 0 {
        return Ok(0);
    }
    let kept = length.min(digits.len() as i64) as usize;
    let mut value: u128 = if kept == 0 {
        0
    } else {
        // At most 20 digits, as checked above.
        digits[..kept].parse().map_err(|_| Misfit::NotANumber)?
    };
    if shift > 0 {
        // length <= 20 bounds shift.
        value *= 10_u128.pow(shift as u32);
    } else if digits.as_bytes().get(kept).is_some_and(|&digit| digit >= b'5') {
        value += 1;
    }
    u64::try_from(value).map_err(|_| Misfit::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_scale_exactly() {
        assert_eq!(scaled("0.35", 6), Ok(350_000));
        assert_eq!(scaled("1.1", 9), Ok(1_100_000_000));
        assert_eq!(scaled("+3", 0), Ok(3));
        assert_eq!(scaled("1.5e3", 6), Ok(1_500_000_000));
        assert_eq!(scaled("1E-6", 6), Ok(1));
        assert_eq!(scaled("0.0000004", 6), Ok(0));
        assert_eq!(scaled("0.0000005", 6), Ok(1));
        assert_eq!(scaled("0.99999999", 6), Ok(1_000_000));
        assert_eq!(scaled("-0.0", 6), Ok(0));
        assert_eq!(scaled("18446744073709551615", 0), Ok(u64::MAX));
    }

    #[test]
    fn what_does_not_fit_says_why() {
        assert_eq!(scaled("-1", 6), Err(Misfit::Negative));
        assert_eq!(scaled("18446744073709551616", 0), Err(Misfit::TooLarge));
        assert_eq!(scaled("1e999999999999999999999", 6), Err(Misfit::TooLarge));
        assert_eq!(scaled("1e-999999999999999999999", 6), Ok(0));
        assert_eq!(scaled("inf", 6), Err(Misfit::NotANumber));
        assert_eq!(scaled("nan", 6), Err(Misfit::NotANumber));
        assert_eq!(scaled("", 6), Err(Misfit::NotANumber));
    }

    #[test]
    fn unscaled_is_the_way_back() {
        assert_eq!(unscaled(350_000, 6), "0.35");
        assert_eq!(unscaled(30_000_000_000, 9), "30");
        assert_eq!(unscaled(1, 9), "0.000000001");
        assert_eq!(unscaled(u64::MAX, 6), "18446744073709.551615");
    }
}

//! Numbers for people: at most three significant digits, with a unit that fits.

/// At most three significant digits, thousands grouped: `88,700`, `2.09`, `0.0452`.
pub fn three_digits(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let step = 10_f64.powi(magnitude - 2);
    let rounded = (value / step).round() * step;
    // Rounding may have carried into the next magnitude: 9.996 → 10.0.
    let magnitude = rounded.abs().log10().floor() as i32;
    let decimals = usize::try_from((2 - magnitude).max(0)).unwrap_or(0);
    grouped(&format!("{rounded:.decimals$}"))
}

/// Groups the digits before the point by threes.
fn grouped(text: &str) -> String {
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::new();
    for (i, c) in whole.chars().enumerate() {
        let left = whole.len() - i;
        if i > 0 && left.is_multiple_of(3) && c != '-' && !out.ends_with('-') {
            out.push(',');
        }
        out.push(c);
    }
    out + rest
}

/// A whole number, thousands grouped.
pub fn count(n: u64) -> String {
    grouped(&n.to_string())
}

/// Nanoseconds as ns, µs, ms or s.
pub fn duration(ns: f64) -> String {
    let (scale, unit) = match ns {
        _ if ns >= 1e9 => (1e9, "s"),
        _ if ns >= 1e6 => (1e6, "ms"),
        _ if ns >= 1e3 => (1e3, "µs"),
        _ => (1.0, "ns"),
    };
    format!("{} {unit}", three_digits(ns / scale))
}

/// Bytes as MiB.
pub fn mebibytes(bytes: f64) -> String {
    three_digits(bytes / (1024.0 * 1024.0))
}

/// A ratio with its interval where there is one: `2.09 (2.05–2.12)`.
pub fn ratio(ratio: f64, low: Option<f64>, high: Option<f64>) -> String {
    match low.zip(high) {
        Some((low, high)) => {
            format!("{} ({}–{})", three_digits(ratio), three_digits(low), three_digits(high))
        }
        None => three_digits(ratio),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (88_712.4, "88,700"),
            (1_234_567.0, "1,230,000"),
            (999.6, "1,000"),
            (9.996, "10.0"),
            (2.0949, "2.09"),
            (0.045_21, "0.0452"),
            (100.0, "100"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(three_digits(value), text);
        }
    }

    #[test]
    fn durations_and_counts() {
        assert_eq!(duration(950.0), "950 ns");
        assert_eq!(duration(12_345.0), "12.3 µs");
        assert_eq!(duration(3.0e6), "3.00 ms");
        assert_eq!(duration(2.5e9), "2.50 s");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(12), "12");
    }
}

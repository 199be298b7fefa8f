//! Medians and their order-statistic intervals.

/// A percentile with fewer samples beyond it is withheld: it would be an order statistic of
/// a handful of requests.
pub const SAMPLES_BEYOND: f64 = 10.0;

/// Median of `values`; the mean of the two in the middle for an even number.
/// `None` for an empty slice. Values must not be NaN.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(sorted[n / 2]),
        _ => Some((sorted[n / 2 - 1] + sorted[n / 2]) / 2.0),
    }
}

/// An interval that holds the population's median with at least 95 % confidence: the k-th
/// smallest and the k-th largest value, k the largest with
/// 2·P(Bin(n, ½) < k) ≤ 0.05. `None` below six values: there is no such interval.
///
/// Source: W. J. Conover, Practical Nonparametric Statistics, 3rd ed., section 3.2.
pub fn median_interval(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let mut term = 0.5_f64.powi(i32::try_from(n).ok()?); // P(Bin = 0)
    let mut below = 0.0;
    let mut k = 0;
    while k < n / 2 && 2.0 * (below + term) <= 0.05 {
        below += term;
        k += 1;
        term *= (n - k + 1) as f64 / k as f64;
    }
    (k > 0).then(|| (sorted[k - 1], sorted[n - k]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }

    #[test]
    fn ranks_agree_with_the_table() {
        // (n, k): tables of the sign test, two-sided 95 %.
        for (n, k) in
            [(5, 0), (6, 1), (8, 1), (9, 2), (12, 3), (15, 4), (18, 5), (20, 6), (24, 7), (25, 8)]
        {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            let expected = (k > 0).then(|| (f64::from(k), f64::from(n + 1 - k)));
            assert_eq!(median_interval(&values), expected, "n = {n}");
        }
    }
}

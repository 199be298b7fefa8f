//! Medians and their order-statistic intervals.

/// A percentile with fewer samples beyond it is withheld: it would be an order statistic of
/// a handful of requests.
const SAMPLES_BEYOND: f64 = 10.0;

/// Whether `n` samples have enough beyond the quantile `q`.
pub fn has_enough_beyond(n: u64, q: f64) -> bool {
    // 100 × (1 − 0.9) is a little less than 10 in binary.
    n as f64 * (1.0 - q) >= SAMPLES_BEYOND * (1.0 - 1e-9)
}

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

/// Makes the median absolute deviation of a normal sample estimate its standard deviation:
/// 1 / Φ⁻¹(¾).
const NORMAL: f64 = 1.482_602_218_505_602;

/// Spread of `values` around their median: the median absolute deviation, scaled so that it
/// is the standard deviation where they are normal, but never below `floor`, in their unit.
/// `None` for an empty slice. Values must not be NaN.
///
/// The floor is no ornament: where more than half of the values agree exactly the deviation
/// is zero, and everything else would lie infinitely many deviations away.
///
/// Source: P. J. Rousseeuw, C. Croux, Alternatives to the median absolute deviation, Journal
/// of the American Statistical Association 88 (1993), 1273–1283.
pub fn median_absolute_deviation(values: &[f64], floor: f64) -> Option<f64> {
    let middle = median(values)?;
    let deviations: Vec<f64> = values.iter().map(|v| (v - middle).abs()).collect();
    Some((NORMAL * median(&deviations)?).max(floor))
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
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    #[test]
    fn ten_samples_beyond_a_percentile_are_enough() {
        let table = [(0.5, 20), (0.9, 100), (0.95, 200), (0.99, 1_000), (0.999, 10_000)];
        for (q, enough) in table {
            assert!(has_enough_beyond(enough, q), "{q}");
            assert!(!has_enough_beyond(enough - 1, q), "{q}");
        }
    }

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

    #[test]
    fn deviations() {
        let mad = median_absolute_deviation;
        assert_eq!(mad(&[], 0.1), None);
        // The example of R's manual: mad(c(1:9)) is 2.9652, with 1.4826 for the constant.
        let nine: Vec<f64> = (1..=9).map(f64::from).collect();
        assert!((mad(&nine, 0.0).unwrap() - 2.9652).abs() < 1e-4);
        // One outlier does not hide itself by widening the scale.
        assert!((mad(&[1.0, 2.0, 3.0, 4.0, 1e9], 0.0).unwrap() - NORMAL).abs() < 1e-12);
    }

    #[test]
    fn a_deviation_of_zero_does_not_flag_everything() {
        let values = [5.0, 5.0, 5.0, 5.0, 5.01, 9.0];
        assert_eq!(median_absolute_deviation(&values, 0.0), Some(0.0));
        let scale = median_absolute_deviation(&values, 0.05).unwrap();
        let far: Vec<f64> =
            values.into_iter().filter(|v| (v - 5.0_f64).abs() / scale > 3.5).collect();
        assert_eq!(far, [9.0]);
    }

    fn values() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(-1e6..1e6_f64, 1..40)
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

        #[test]
        fn a_spread_follows_the_scale_and_not_the_place(v in values(), by in 0.1..10.0_f64) {
            let moved: Vec<f64> = v.iter().map(|x| 3.0 - by * x).collect();
            let before = median_absolute_deviation(&v, 0.0).unwrap();
            let after = median_absolute_deviation(&moved, 0.0).unwrap();
            prop_assert!((after - by * before).abs() <= 1e-7 * (1.0 + after));
            prop_assert!(median_absolute_deviation(&v, before + 1.0) == Some(before + 1.0));
        }

        #[test]
        fn the_interval_holds_the_median(v in values()) {
            let middle = median(&v).unwrap();
            if let Some((low, high)) = median_interval(&v) {
                prop_assert!(low <= middle && middle <= high);
            }
        }
    }
}

//! Many comparisons at once: without an adjustment twenty of them show one difference by
//! chance.

/// Holm's step-down adjustment: what is below 0.05 afterwards may be claimed, and the chance
/// that *any* such claim is false is at most 5 %, however the comparisons hang together.
/// One adjusted value for each p value, in the same order; values must not be NaN.
///
/// Source: S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian
/// Journal of Statistics 6 (1979), 65–70.
pub fn adjust(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&i, &j| p_values[i].total_cmp(&p_values[j]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut floor = 0.0_f64;
    for (rank, &i) in order.iter().enumerate() {
        let left = (p_values.len() - rank) as f64;
        // A larger p value must not end up below a smaller one.
        floor = floor.max(p_values[i] * left).min(1.0);
        adjusted[i] = floor;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    #[test]
    fn agrees_with_worked_examples() {
        // As R's p.adjust(p, "holm") gives them.
        for (p, expected) in [
            (&[0.01, 0.04, 0.03, 0.005][..], &[0.03, 0.06, 0.06, 0.02][..]),
            (&[0.02, 0.02, 0.9], &[0.06, 0.06, 0.9]),
            (&[0.5, 0.6], &[1.0, 1.0]),
            (&[0.04], &[0.04]),
            (&[], &[]),
        ] {
            let adjusted = adjust(p);
            assert_eq!(adjusted.len(), expected.len());
            for (got, wanted) in adjusted.iter().zip(expected) {
                assert!((got - wanted).abs() < 1e-12, "{p:?}: {adjusted:?}");
            }
        }
    }

    fn p_values() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(0.0..=1.0_f64, 1..30)
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

        #[test]
        fn keeps_the_order_and_lies_between_p_and_bonferroni(p in p_values()) {
            let adjusted = adjust(&p);
            for (i, &a) in adjusted.iter().enumerate() {
                prop_assert!(p[i] <= a && a <= (p[i] * p.len() as f64).min(1.0));
                for (j, &b) in adjusted.iter().enumerate() {
                    prop_assert!(p[i] > p[j] || a <= b);
                }
            }
        }

        #[test]
        fn does_not_depend_on_the_order(p in p_values(), by in 0..30_usize) {
            let by = by % p.len();
            let mut turned = p.clone();
            turned.rotate_left(by);
            let mut expected = adjust(&p);
            expected.rotate_left(by);
            prop_assert_eq!(adjust(&turned), expected);
        }

        #[test]
        fn a_further_comparison_makes_none_easier(p in p_values(), more in 0.0..=1.0_f64) {
            let mut larger = p.clone();
            larger.push(more);
            let adjusted = adjust(&larger);
            prop_assert!(adjust(&p).iter().zip(&adjusted).all(|(few, many)| few <= many));
        }
    }
}

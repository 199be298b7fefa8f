//! The paired comparison of two members over blocks: Walsh averages and the exact interval
//! that belongs to the Wilcoxon signed-rank test, and the p value of the paired t test.
//!
//! Source: M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric Statistical Methods,
//! 3rd ed., sections 3.2 and 3.3 (Hodges–Lehmann estimator, Tukey's interval).

/// Below so many blocks there is no 95 % interval: its rank would be below 1.
pub const FEWEST_BLOCKS: usize = 6;

/// A ratio of two members.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// exp of the median of the Walsh averages.
    pub ratio: f64,
    /// 95 % interval; `None` below six blocks, where there is none.
    pub interval: Option<(f64, f64)>,
}

/// Estimates a ratio from the blocks' log ratios. `None` without blocks.
pub fn estimate(log_ratios: &[f64]) -> Option<Estimate> {
    let averages = walsh_averages(log_ratios);
    let ratio = super::quantile::median(&averages)?.exp();
    let interval = interval_rank(log_ratios.len())
        .map(|k| (averages[k - 1].exp(), averages[averages.len() - k].exp()));
    Some(Estimate { ratio, interval })
}

/// Two-sided p value of the paired t test that the true ratio is 1; `None` below two blocks.
/// Blocks that agree to the last digit give 0, or 1 where all of them are exactly 1.
///
/// Why not the signed-rank test, to which the interval belongs: at six blocks its p value
/// cannot fall below 2/2⁶ = 0.031, so it could never survive an adjustment for several
/// comparisons. What the t test asks for is roughly met: each value is a median over many
/// rounds or a quotient of large sums.
///
/// Source: Student, The probable error of a mean, Biometrika 6 (1908), 1–25.
pub fn p_value(log_ratios: &[f64]) -> Option<f64> {
    let n = log_ratios.len();
    if n < 2 {
        return None;
    }
    let mean = log_ratios.iter().sum::<f64>() / n as f64;
    let squares: f64 = log_ratios.iter().map(|d| (d - mean).powi(2)).sum();
    let error = (squares / (n - 1) as f64 / n as f64).sqrt();
    if error == 0.0 {
        return Some(if mean == 0.0 { 1.0 } else { 0.0 });
    }
    Some(super::student::two_sided(mean / error, n - 1))
}

/// The chance that the interval of so many blocks covers the true ratio, where the blocks'
/// log ratios lie symmetrically around its logarithm. `None` where there is no interval.
pub fn nominal_coverage(blocks: usize) -> Option<f64> {
    let k = interval_rank(blocks)?;
    Some(1.0 - 2.0 * signed_rank_distribution(blocks)[..k].iter().sum::<f64>())
}

/// (dᵢ + dⱼ)/2 for all i ≤ j, sorted.
fn walsh_averages(d: &[f64]) -> Vec<f64> {
    let mut averages: Vec<f64> =
        (0..d.len()).flat_map(|i| (i..d.len()).map(move |j| (d[i] + d[j]) / 2.0)).collect();
    averages.sort_unstable_by(f64::total_cmp);
    averages
}

/// The largest k with P(W⁺ < k) ≤ 2.5 %: the interval runs from the k-th smallest to the
/// k-th largest Walsh average. `None` where even k = 1 is too much (below six blocks).
fn interval_rank(blocks: usize) -> Option<usize> {
    let distribution = signed_rank_distribution(blocks);
    let mut below = 0.0;
    let mut k = 0;
    for p in distribution {
        below += p;
        if below > 0.025 {
            break;
        }
        k += 1;
    }
    (k > 0).then_some(k)
}

/// P(W⁺ = w) for w = 0 … n(n+1)/2 under the null hypothesis: every rank is in the sum or
/// not, with even chances. Exact in doubles for the n ≤ 24 used here.
fn signed_rank_distribution(n: usize) -> Vec<f64> {
    let mut p = vec![0.0; n * (n + 1) / 2 + 1];
    p[0] = 1.0;
    for rank in 1..=n {
        // The sum of the ranks so far is as high as it can be yet.
        for w in (0..=rank * (rank + 1) / 2).rev() {
            let with = if w >= rank { p[w - rank] } else { 0.0 };
            p[w] = (p[w] + with) / 2.0;
        }
    }
    p
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    #[test]
    fn ranks_and_coverage_agree_with_the_table() {
        // (blocks, k, coverage %), as published in tables of the signed-rank test.
        for (n, k, coverage) in
            [(6, 1, 96.9), (9, 6, 96.1), (12, 14, 95.8), (18, 41, 95.2), (24, 82, 95.1)]
        {
            assert_eq!(interval_rank(n), Some(k), "{n} blocks");
            let exact = 100.0 * nominal_coverage(n).expect("an interval");
            assert!((exact - coverage).abs() < 0.05, "{n} blocks: {exact}");
        }
        for n in 0..FEWEST_BLOCKS {
            assert_eq!(interval_rank(n), None, "{n} blocks");
        }
    }

    #[test]
    fn a_ratio_and_its_inverse_mirror_each_other() {
        let d = [0.10, 0.12, 0.08, 0.30, 0.11, 0.09];
        let there = estimate(&d).expect("six blocks");
        let back = estimate(&d.map(|x| -x)).expect("six blocks");
        let (low, high) = there.interval.expect("an interval");
        assert!(low < there.ratio && there.ratio < high);
        assert!((there.ratio * back.ratio - 1.0).abs() < 1e-12);
        assert!((low * back.interval.expect("an interval").1 - 1.0).abs() < 1e-12);
        // The extreme block widens the interval; it does not move the estimate to the mean.
        assert!((there.ratio - 0.11_f64.exp()).abs() < 0.02);
        assert!((high - 0.30_f64.exp()).abs() < 1e-12);
    }

    #[test]
    fn estimate_and_interval_agree_with_the_textbook() {
        // Hamilton scale of nine patients before and after, in thousandths: Hollander and Wolfe,
        // table 3.1, examples 3.3 and 3.4 (−0.46; −0.786 to −0.010 at 96.1 %).
        let before = [1830, 500, 1620, 2480, 1680, 1880, 1550, 3060, 1300];
        let after = [878, 647, 598, 2050, 1060, 1290, 1060, 3140, 1290];
        let d: Vec<f64> = after.iter().zip(before).map(|(y, x)| f64::from(y - x) / 1e3).collect();
        let got = estimate(&d).expect("nine blocks");
        let (low, high) = got.interval.expect("an interval");
        for (got, wanted) in [(got.ratio, -0.46), (low, -0.786), (high, -0.010)] {
            assert!((got.ln() - wanted).abs() < 1e-9, "{} is not {wanted}", got.ln());
        }
    }

    #[test]
    fn p_value_agrees_with_the_textbook() {
        // Sleep gained by ten patients with two drugs: Student (1908). R gives
        // t.test(Pair(extra1, extra2) ~ 1, data = sleep2): t = −4.0621, df = 9, p = 0.002833.
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let d: Vec<f64> = first.iter().zip(second).map(|(x, y)| x - y).collect();
        let p = p_value(&d).expect("ten blocks");
        assert!((p - 0.002_832_890_19).abs() < 1e-11, "{p}");
    }

    #[test]
    fn p_value_without_spread() {
        assert_eq!(p_value(&[]), None);
        assert_eq!(p_value(&[0.1]), None);
        assert_eq!(p_value(&[0.5; 6]), Some(0.0));
        assert_eq!(p_value(&[0.0; 6]), Some(1.0));
    }

    fn blocks() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(-2.0..2.0_f64, 2..25)
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

        #[test]
        fn swapping_the_members_mirrors_everything(d in blocks()) {
            let back: Vec<f64> = d.iter().map(|x| -x).collect();
            prop_assert_eq!(p_value(&d), p_value(&back));
            let (there, back) = (estimate(&d).expect("blocks"), estimate(&back).expect("blocks"));
            prop_assert!((there.ratio * back.ratio - 1.0).abs() < 1e-12);
            if let Some(((low, high), (back_low, back_high))) = there.interval.zip(back.interval) {
                prop_assert!((low * back_high - 1.0).abs() < 1e-12);
                prop_assert!((high * back_low - 1.0).abs() < 1e-12);
            }
        }

        #[test]
        fn the_interval_holds_the_estimate_and_lies_within_the_blocks(d in blocks()) {
            let got = estimate(&d).expect("blocks");
            prop_assert_eq!(got.interval.is_some(), d.len() >= FEWEST_BLOCKS);
            if let Some((low, high)) = got.interval {
                prop_assert!(low <= got.ratio && got.ratio <= high);
                let least = d.iter().copied().fold(f64::INFINITY, f64::min);
                let greatest = d.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                prop_assert!(least.exp() <= low && high <= greatest.exp());
            }
        }

        #[test]
        fn a_faster_numerator_scales_the_ratio(d in blocks(), by in -1.0..1.0_f64) {
            let scaled: Vec<f64> = d.iter().map(|x| x + by).collect();
            let (before, after) = (estimate(&d).expect("blocks"), estimate(&scaled).expect("blocks"));
            prop_assert!((after.ratio / before.ratio / by.exp() - 1.0).abs() < 1e-12);
        }

        #[test]
        fn the_p_value_knows_no_unit(d in blocks(), by in 0.01..100.0_f64) {
            let scaled: Vec<f64> = d.iter().map(|x| x * by).collect();
            let (p, q) = (p_value(&d).expect("blocks"), p_value(&scaled).expect("blocks"));
            prop_assert!((p - q).abs() < 1e-9, "{p} {q}");
        }

        #[test]
        fn nothing_depends_on_the_order_of_the_blocks(d in blocks()) {
            let turned: Vec<f64> = d.iter().rev().copied().collect();
            prop_assert_eq!(estimate(&d), estimate(&turned));
            let (p, q) = (p_value(&d).expect("blocks"), p_value(&turned).expect("blocks"));
            prop_assert!((p - q).abs() < 1e-9);
        }
    }
}

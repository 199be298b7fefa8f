//! The paired comparison of two members over blocks: Walsh averages and the exact interval
//! that belongs to the Wilcoxon signed-rank test.
//!
//! Source: M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric Statistical Methods,
//! 3rd ed., sections 3.2 and 3.3 (Hodges–Lehmann estimator, Tukey's interval).

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

/// (dᵢ + dⱼ)/2 for all i ≤ j, sorted.
fn walsh_averages(d: &[f64]) -> Vec<f64> {
    let mut averages: Vec<f64> =
        (0..d.len()).flat_map(|i| (i..d.len()).map(move |j| (d[i] + d[j]) / 2.0)).collect();
    averages.sort_by(f64::total_cmp);
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
        for w in (0..p.len()).rev() {
            let with = if w >= rank { p[w - rank] } else { 0.0 };
            p[w] = (p[w] + with) / 2.0;
        }
    }
    p
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_coverage_agree_with_the_table() {
        // (blocks, k, coverage %), as published in tables of the signed-rank test.
        for (n, k, coverage) in
            [(6, 1, 96.9), (9, 6, 96.1), (12, 14, 95.8), (18, 41, 95.2), (24, 82, 95.1)]
        {
            assert_eq!(interval_rank(n), Some(k), "{n} blocks");
            let tail: f64 = signed_rank_distribution(n)[..k].iter().sum();
            let exact = 100.0 * (1.0 - 2.0 * tail);
            assert!((exact - coverage).abs() < 0.05, "{n} blocks: {exact}");
        }
        for n in 0..6 {
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
}

//! Student's t distribution, for whole degrees of freedom.

use std::f64::consts::FRAC_PI_2;

/// P(|T| ≥ |t|) for `freedom` ≥ 1 degrees of freedom, to an absolute error of about 1e-15;
/// `t` may be infinite. Degrees of freedom are whole here, so the distribution function is a
/// finite sum and needs no incomplete beta function.
///
/// Source: M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
pub fn two_sided(t: f64, freedom: usize) -> f64 {
    let angle = (t.abs() / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let odd = freedom % 2;
    // Terms cosᵏ θ for k = 0, 2, 4… (ν even) or 1, 3, 5… (ν odd), up to ν − 2.
    let mut term = if odd == 1 { cosine } else { 1.0 };
    let mut sum = 0.0;
    for k in (odd..freedom.saturating_sub(1)).step_by(2) {
        sum += term;
        term *= cosine * cosine * (k + 1) as f64 / (k + 2) as f64;
    }
    let within = if odd == 1 { (angle + sine * sum) / FRAC_PI_2 } else { sine * sum };
    (1.0 - within).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    #[test]
    fn agrees_with_the_tables() {
        // (degrees of freedom, two-sided critical values at 10, 5 and 1 %): NIST/SEMATECH
        // e-Handbook of Statistical Methods, table 1.3.6.7.2.
        for (freedom, tenth, twentieth, hundredth) in [
            (1, 6.314, 12.706, 63.657),
            (2, 2.920, 4.303, 9.925),
            (3, 2.353, 3.182, 5.841),
            (5, 2.015, 2.571, 4.032),
            (8, 1.860, 2.306, 3.355),
            (11, 1.796, 2.201, 3.106),
            (17, 1.740, 2.110, 2.898),
            (23, 1.714, 2.069, 2.807),
            (100, 1.660, 1.984, 2.626),
        ] {
            for (t, p) in [(tenth, 0.10), (twentieth, 0.05), (hundredth, 0.01)] {
                // The table has three decimals; where the tail is steepest that is 0.02 %.
                let got = two_sided(t, freedom);
                assert!((got - p).abs() < 1e-3 * p, "t({freedom}) = {t}: {got}");
            }
        }
    }

    #[test]
    fn agrees_with_the_incomplete_beta_function() {
        // I_x(ν/2, ½) at x = ν/(ν + t²), evaluated to 30 digits with mpmath 1.3.
        for (t, freedom, p) in [
            (0.0, 5, 1.0),
            (1.0, 1, 0.5),
            (2.0, 2, 0.183_503_419_072_274),
            (0.3, 7, 0.772_890_050_402_134),
            (2.571, 5, 0.049_974_634_683_851_4),
            (2.201, 11, 0.049_998_703_952_417_3),
            (3.5, 23, 0.001_928_060_552_427_5),
            (10.0, 5, 0.000_170_947_575_742_964),
            (23.0, 5, 2.890_071_241_e-6),
            (8.0, 23, 4.289_191_52e-8),
        ] {
            let got = two_sided(t, freedom);
            assert!((got - p).abs() < 4e-15, "t({freedom}) = {t}: {got}");
        }
        assert_eq!(two_sided(f64::INFINITY, 5), 0.0);
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

        #[test]
        fn is_a_tail(t in 0.0..50.0_f64, step in 0.0..5.0_f64, freedom in 1..60_usize) {
            let p = two_sided(t, freedom);
            prop_assert!((0.0..=1.0).contains(&p));
            prop_assert_eq!(p, two_sided(-t, freedom));
            prop_assert!(two_sided(t + step, freedom) <= p + 1e-14);
            // More blocks make the same t more telling.
            prop_assert!(two_sided(t, freedom + 1) <= p + 1e-14);
        }
    }
}

use super::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Six log ratios; at six blocks the interval reaches from the least to the greatest.
fn six(low: f64, high: f64) -> [f64; 6] {
    let at = |share: f64| low + share * (high - low);
    [at(0.0), at(0.3), at(0.45), at(0.55), at(0.7), at(1.0)]
}

fn alone(metric: &str, primary: bool, log_ratios: &[f64], spoiled: &[Spoiled]) -> Judgement {
    let judged = judge(&[Comparison { metric, primary, log_ratios, spoiled }]);
    judged.into_iter().next().expect("one judgement each")
}

#[test]
fn one_interval_decides() {
    use Verdict::{Higher, Inconclusive, Lower, Small, Tie};
    // The zone of ±5 % ends at ln 1.05 = 0.0488.
    for (low, high, expected, reason) in [
        (-0.02, 0.03, Tie, "the interval lies wholly within the zone"),
        (0.01, 0.04, Tie, "the interval lies wholly within the zone, although it excludes 1"),
        (0.06, 0.08, Higher, "the interval lies wholly outside the zone, adjusted p < 0.001"),
        (-0.9, -0.8, Lower, "the interval lies wholly outside the zone, adjusted p < 0.001"),
        (0.02, 0.06, Small, "the interval excludes 1 but crosses an edge of the zone"),
        (-0.06, -0.02, Small, "the interval excludes 1 but crosses an edge of the zone"),
        (-0.01, 0.06, Inconclusive, "the interval holds 1 and reaches beyond the zone"),
        (-0.3, 0.3, Inconclusive, "the interval holds 1 and reaches beyond the zone"),
    ] {
        let got = alone("throughput", true, &six(low, high), &[]);
        assert_eq!((got.verdict, got.reason.as_str()), (expected, reason), "{low} to {high}");
    }
    // The same figures in the wider zone of p99, which ends at ln 1.10 = 0.0953.
    assert_eq!(alone("p99", true, &six(0.06, 0.08), &[]).verdict, Tie);
}

#[test]
fn a_claim_needs_the_family_to_agree() {
    // p = 0.012: enough alone, not among twenty.
    let d = six(0.05, 1.5);
    let p = paired::p_value(&d).unwrap();
    assert!((0.0122..0.0124).contains(&p), "{p}");
    assert_eq!(alone("throughput", true, &d, &[]).verdict, Verdict::Higher);
    let nothing = six(-1.0, 1.0);
    let mut family =
        vec![Comparison { metric: "p99", primary: true, log_ratios: &nothing, spoiled: &[] }; 19];
    family.push(Comparison { metric: "throughput", primary: true, log_ratios: &d, spoiled: &[] });
    let judged = judge(&family);
    assert_eq!(judged[19].verdict, Verdict::Small);
    assert!((judged[19].p_adjusted.unwrap() - 20.0 * p).abs() < 1e-12);
    assert_eq!(
        judged[19].reason,
        "the interval lies wholly outside the zone, but adjusted p = 0.25"
    );
    // At the zone's edge, one interval among twenty excludes 1 by chance.
    let edge = six(0.005, 0.2);
    family[19].log_ratios = &edge;
    let at_edge = judge(&family).pop().unwrap();
    assert_eq!(at_edge.verdict, Verdict::Inconclusive);
    assert!(at_edge.reason.contains("may by chance, adjusted p = 0."), "{}", at_edge.reason);
    assert_eq!(alone("throughput", true, &edge, &[]).verdict, Verdict::Small);
    family[19].log_ratios = &d;
    // Outside the family nothing is adjusted and nothing is claimed.
    family[19].primary = false;
    let exploratory = judge(&family).pop().unwrap();
    assert_eq!((exploratory.verdict, exploratory.exploratory), (Verdict::Higher, true));
    assert_eq!(exploratory.p_adjusted, None);
    // Too few blocks are no test, so they are not counted as one.
    for c in &mut family[..19] {
        c.log_ratios = &nothing[..5];
    }
    family[19].primary = true;
    let last = judge(&family).pop().unwrap();
    assert_eq!(last.verdict, Verdict::Higher);
    assert!((last.p_adjusted.unwrap() - p).abs() < 1e-12);
}

#[test]
fn below_six_blocks_direction_only() {
    let got = alone("throughput", true, &[0.5; 5], &[]);
    assert_eq!(got.verdict, Verdict::Inconclusive);
    assert_eq!(got.reason, "direction only: 5 of the 6 blocks that an interval needs");
    assert!(got.estimate.is_some_and(|e| e.interval.is_none() && e.ratio > 1.6));
    let got = alone("throughput", true, &[], &[]);
    assert_eq!((got.verdict, got.estimate), (Verdict::Inconclusive, None));
    assert_eq!(got.reason, "no block that both completed");
}

#[test]
fn what_is_spoiled_is_not_claimed() {
    use Spoiled::{Disturbed, Forced, GeneratorLimited, Twin};
    let clear = six(0.6, 0.7);
    let limited = || GeneratorLimited("a thread was 97 % busy".to_owned());
    let disturbed = || Disturbed("3.1 % of a window".to_owned());
    let twin = || Twin { low: 0.99, high: 1.08 };
    for (metric, spoiled, expected) in [
        ("throughput", vec![limited()], Verdict::GeneratorLimited),
        ("p99", vec![limited()], Verdict::GeneratorLimited),
        ("throughput", vec![disturbed(), limited()], Verdict::GeneratorLimited),
        ("throughput", vec![disturbed()], Verdict::Noisy),
        ("throughput", vec![twin()], Verdict::Noisy),
        // CPU time is counted: a neighbour makes a service wait, not work.
        ("cpu-per-request", vec![disturbed()], Verdict::Higher),
        ("cpu-per-request", vec![limited()], Verdict::GeneratorLimited),
        ("memory-pss-loaded", vec![limited()], Verdict::Higher),
        ("cpu-per-request", vec![Spoiled::Invalid("swapped".to_owned())], Verdict::Noisy),
        ("throughput", vec![Spoiled::TwinMissing { blocks: 5 }], Verdict::Noisy),
        ("memory-pss-loaded", vec![disturbed()], Verdict::Higher),
        ("cpu-per-request", vec![twin()], Verdict::Noisy),
        ("memory-pss-loaded", vec![Forced], Verdict::Noisy),
    ] {
        let got = alone(metric, true, &clear, &spoiled);
        assert_eq!(got.verdict, expected, "{metric}, {spoiled:?}");
    }
    let got = alone("throughput", true, &six(-0.01, 0.01), &[disturbed(), twin()]);
    assert_eq!(got.verdict, Verdict::Noisy, "a tie is a claim too");
    assert_eq!(
        got.reason,
        "disturbed: 3.1 % of a window; the twin differs from itself (95 % 0.99–1.08)"
    );
}

#[test]
fn the_twin_objects() {
    // Half of the zone of ±5 % ends at 0.0244.
    for (low, high, objects) in [
        (-0.02, 0.02, false),
        (0.01, 0.04, false),
        (0.025, 0.04, true),
        (-0.04, -0.025, true),
        (-0.05, 0.01, true),
        (-0.01, 0.05, true),
    ] {
        assert_eq!(twin_objects("throughput", &six(low, high)).is_some(), objects, "{low} {high}");
    }
    assert_eq!(twin_objects("p99", &six(-0.05, 0.05)), None);
    assert_eq!(twin_objects("throughput", &[1.0; 5]), None);
}

#[test]
fn p_values_are_not_rounded_over_the_edge() {
    for (p, words) in [
        (0.0, "p < 0.001"),
        (0.049_99, "p = 0.049"),
        (0.05, "p = 0.05"),
        (0.0502, "p = 0.05"),
        (0.123, "p = 0.12"),
        (1.0, "p = 1.00"),
    ] {
        assert_eq!(p_words(p), words);
    }
}

#[test]
fn verdicts_are_written_in_kebab_case() {
    let names = [
        (Verdict::Tie, "tie"),
        (Verdict::Higher, "higher"),
        (Verdict::Lower, "lower"),
        (Verdict::Small, "small"),
        (Verdict::Inconclusive, "inconclusive"),
        (Verdict::GeneratorLimited, "generator-limited"),
        (Verdict::Noisy, "noisy"),
    ];
    for (verdict, name) in names {
        assert_eq!(serde_json::to_value(verdict).unwrap(), name);
        assert_eq!(serde_json::from_value::<Verdict>(name.into()).unwrap(), verdict);
    }
    assert_eq!(serde_json::to_value(StoppedBy::Width).unwrap(), "width");
}

fn family() -> impl Strategy<Value = Vec<(Vec<f64>, bool)>> {
    let blocks = (-0.3..0.3_f64, 0.0001..0.2_f64, prop::collection::vec(-1.0..1.0_f64, 0..13));
    let blocks = blocks.prop_map(|(centre, sd, z)| z.iter().map(|z| centre + sd * z).collect());
    prop::collection::vec((blocks, any::<bool>()), 1..12)
}

fn judged(family: &[(Vec<f64>, bool)]) -> Vec<Judgement> {
    let comparisons: Vec<Comparison> = family
        .iter()
        .enumerate()
        .map(|(i, (d, primary))| Comparison {
            metric: PRIMARY[i % 4],
            primary: *primary,
            log_ratios: d,
            spoiled: &[],
        })
        .collect();
    judge(&comparisons)
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn swapping_a_and_b_swaps_higher_and_lower(family in family()) {
        let back: Vec<(Vec<f64>, bool)> =
            family.iter().map(|(d, p)| (d.iter().map(|x| -x).collect(), *p)).collect();
        for (there, back) in judged(&family).iter().zip(judged(&back)) {
            let expected = match there.verdict {
                Verdict::Higher => Verdict::Lower,
                Verdict::Lower => Verdict::Higher,
                same => same,
            };
            prop_assert_eq!(back.verdict, expected);
            prop_assert_eq!(&back.reason, &there.reason);
            prop_assert_eq!(back.p_adjusted, there.p_adjusted);
        }
    }

    #[test]
    fn a_claim_keeps_its_conditions(family in family()) {
        for (i, got) in judged(&family).iter().enumerate() {
            let edge = Zone::of(PRIMARY[i % 4]).edge();
            if let Some((low, high)) = got.estimate.and_then(|e| e.interval) {
                let (low, high) = (low.ln(), high.ln());
                match got.verdict {
                    Verdict::Tie => prop_assert!(-edge <= low && high <= edge),
                    Verdict::Higher => prop_assert!(low > edge),
                    Verdict::Lower => prop_assert!(high < -edge),
                    Verdict::Small => prop_assert!(low > 0.0 || high < 0.0),
                    _ => {
                        let by_chance = got.p_adjusted.is_some_and(|p| p >= SIGNIFICANT);
                        prop_assert!(by_chance || low <= 0.0 && high >= 0.0);
                    }
                }
            } else {
                prop_assert_eq!(got.verdict, Verdict::Inconclusive);
            }
            let claim = matches!(got.verdict, Verdict::Higher | Verdict::Lower);
            if claim && !got.exploratory {
                prop_assert!(got.p_adjusted.is_some_and(|p| p < SIGNIFICANT));
            }
        }
    }

    #[test]
    fn a_further_comparison_adds_no_claim(
        mut family in family(),
        more in prop::collection::vec(-0.1..0.1_f64, 6..13),
    ) {
        let claims = |j: &Judgement| matches!(j.verdict, Verdict::Higher | Verdict::Lower);
        let before = judged(&family);
        family.push((more, true));
        let after = judged(&family);
        prop_assert!(before.iter().zip(&after).all(|(few, many)| claims(few) || !claims(many)));
    }
}

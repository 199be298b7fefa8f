use super::*;

const OPTIONS: fn() -> Options = || Options { sds: vec![0.02], seed: 7, runs: 60 };

/// Whether `share` of `n` is within four standard errors of `p`: a seed is fixed, so this
/// fails for one change in 15,000 that changes nothing.
fn agrees(share: f64, p: f64, n: usize) -> bool {
    (share - p).abs() <= 4.0 * (p * (1.0 - p) / n as f64).sqrt()
}

#[test]
fn a_seed_gives_one_simulation() {
    let options = Options { runs: 10, ..OPTIONS() };
    assert_eq!(simulate(&options), simulate(&options));
    assert_ne!(simulate(&options), simulate(&Options { seed: 8, ..options }));
}

#[test]
fn numbers_are_normal() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let n = 20_000;
    let z: Vec<f64> = (0..n).map(|_| normal(&mut rng)).collect();
    // Φ(0), Φ(1), Φ(1.96), Φ(3).
    for (x, p) in [(0.0, 0.5), (1.0, 0.841_345), (1.96, 0.975_002), (3.0, 0.998_650)] {
        let below = z.iter().filter(|&&z| z < x).count() as f64 / n as f64;
        assert!(agrees(below, p, n), "{below} below {x}");
    }
}

#[test]
fn disturbed_blocks_are_as_many_and_as_far_off_as_said() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let n = 10_000;
    for (disturbance, above, below) in [
        (Disturbance::None, 0.0, 0.0),
        (Disturbance::EitherSide, 0.05, 0.05),
        (Disturbance::OneSide, 0.1, 0.0),
    ] {
        let errors: Vec<f64> = (0..n).map(|_| error(&mut rng, disturbance)).collect();
        assert!(errors.iter().all(|&e| e == 0.0 || e.abs() == GROSS_ERROR));
        let share = |up: bool| {
            errors.iter().filter(|&&e| e != 0.0 && (e > 0.0) == up).count() as f64 / n as f64
        };
        assert!(agrees(share(true), above, n) && agrees(share(false), below, n));
    }
}

#[test]
fn coverage_is_what_theory_says_where_the_scatter_is_symmetric() {
    let result = simulate(&OPTIONS());
    let symmetric = result.coverage.iter().filter(|c| c.disturbance != Disturbance::OneSide);
    for row in symmetric {
        let nominal = row.nominal.expect("six blocks or more");
        assert!((0.93..=0.97).contains(&nominal));
        assert!(agrees(row.covered, nominal, result.single_runs), "{row:?}");
    }
}

#[test]
fn differences_are_not_invented() {
    for sd in [0.02, 0.2] {
        let run = Run { blocks: 6, sd, disturbance: Disturbance::None, planted: 1.0 };
        let row = alike(&mut ChaCha8Rng::seed_from_u64(5), run, 200);
        // At most 5 % of the runs, give or take three standard errors.
        assert!(row.any_claim <= 0.05 + 0.046, "{row:?}");
        assert!(row.any_claim <= row.any_outside_zone.min(row.any_significant), "{row:?}");
    }
}

#[test]
fn a_clear_difference_is_seen_and_a_small_one_is_a_tie() {
    let verdicts = |ratio| {
        let run = Run { blocks: 6, sd: 0.01, disturbance: Disturbance::None, planted: ratio };
        planted(&mut ChaCha8Rng::seed_from_u64(6), run, 50)
    };
    let none = verdicts(1.0);
    assert!(none.tie >= 0.95 && none.higher == 0.0, "{none:?}");
    let clear = verdicts(1.2);
    assert_eq!(clear.higher, 1.0, "{clear:?}");
    // On the edge of the zone a claim would be true only by half.
    let edge = verdicts(1.05);
    assert!(edge.higher <= 0.15 && edge.small >= 0.7, "{edge:?}");
}

#[test]
fn two_pairs_that_share_a_member_hang_together() {
    let run = Run { blocks: 8, sd: 0.02, disturbance: Disturbance::OneSide, planted: 1.1 };
    let compared = run.draw(&mut ChaCha8Rng::seed_from_u64(8));
    assert_eq!(compared.len(), COMPARISONS);
    for three in compared.chunks(3) {
        // ln(1/0), ln(2/0), ln(2/1).
        for ((x, y), z) in three[0].1.iter().zip(&three[1].1).zip(&three[2].1) {
            assert!((y - x - z).abs() < 1e-12);
        }
    }
}

#[test]
fn the_stop_rule_stops_early_where_blocks_agree() {
    let calm = stopping(&mut ChaCha8Rng::seed_from_u64(9), 0.005, 50);
    assert_eq!((calm.mean_blocks, calm.stopped_by_width), (6.0, 1.0));
    let wild = stopping(&mut ChaCha8Rng::seed_from_u64(9), 0.5, 50);
    assert_eq!((wild.mean_blocks, wild.stopped_by_width), (24.0, 0.0));
}

//! What spoils figures: a generator at its limit, a machine that was disturbed, a twin that
//! differs from itself. Rules look at the generator, the machine and the controls, never at
//! the comparison that they spoil.

use super::Compared;
use crate::host::judge::Effect;
use crate::load::limit::{BUSY_PERMILLE, CEILING_SHARE, LITTLE, SERVICE_BUSY};
use crate::plan::Condition;
use crate::record::{
    Benchmark, Block, Caution, CautionKind, Cell, Control, Level, Member, Results,
};
use crate::stats::quantile;
use crate::verdict::{Spoiled, twin_objects};

/// One block of so many that was disturbed can only widen the exact interval, whose ends are
/// single blocks there; more can move it.
const DISTURBED_BLOCKS: f64 = 1.0 / 6.0;

/// A caution, and what it does to a verdict (nothing to one on ratios, where it is `None`).
pub struct Found {
    /// For the record.
    pub caution: Caution,
    spoiled: Option<Spoiled>,
}

/// Everything that spoils something.
pub fn find(benchmark: &Benchmark, levels: &[Level], compared: &[Compared<'_>]) -> Vec<Found> {
    let mut found = Vec::new();
    if benchmark.run.forced {
        let reason = Spoiled::Forced.to_string();
        let caution = caution(CautionKind::Forced, None, None, None, reason);
        found.push(Found { caution, spoiled: Some(Spoiled::Forced) });
    }
    for condition in &benchmark.conditions {
        found.extend(disturbed(benchmark, condition));
        let members = benchmark.members.iter().filter(|m| m.control != Some(Control::Ceiling));
        found.extend(members.filter_map(|m| limited(benchmark, levels, condition, m)));
    }
    found.extend(compared.iter().filter(|c| c.pair.twin).filter_map(|c| {
        let spoiled = twin_objects(c.metric, &c.log_ratios)?;
        let (condition, metric) = (Some(c.condition), Some(c.metric));
        let caution = caution(CautionKind::Twin, condition, None, metric, spoiled.to_string());
        Some(Found { caution, spoiled: Some(spoiled) })
    }));
    found
}

fn caution(
    kind: CautionKind,
    condition: Option<&str>,
    member: Option<&str>,
    metric: Option<&str>,
    reason: String,
) -> Caution {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Caution {
        kind,
        condition: owned(condition),
        member: owned(member),
        metric: owned(metric),
        reason,
    }
}

/// What spoils one comparison.
pub fn of(found: &[Found], c: &Compared<'_>) -> Vec<Spoiled> {
    let concerns = |f: &&Found| {
        let is = |field: &Option<String>, what: &[&str]| {
            field.as_deref().is_none_or(|field| what.contains(&field))
        };
        is(&f.caution.condition, &[c.condition])
            && is(&f.caution.member, &[c.pair.a, c.pair.b])
            && is(&f.caution.metric, &[c.metric])
    };
    found.iter().filter(concerns).filter_map(|f| f.spoiled.clone()).collect()
}

/// Marks the levels that cautions concern. The twin speaks of ratios only.
pub fn mark(results: &mut Results) {
    for level in &mut results.levels {
        let is = |field: &Option<String>, what: &str| field.as_deref().is_none_or(|f| f == what);
        level.marks = results
            .cautions
            .iter()
            .filter(|c| c.kind != CautionKind::Twin && level.unit != "bytes")
            .filter(|c| is(&c.condition, &level.condition) && is(&c.member, &level.member))
            .map(|c| c.kind)
            .collect();
        level.marks.dedup();
    }
}

/// What the machine did while blocks that are used ran under `condition`: the worse of two
/// effects, in the words of the block that had most of it.
fn disturbed(benchmark: &Benchmark, condition: &Condition) -> Vec<Found> {
    let weather = |b: &Block| b.weather.iter().find(|w| w.condition == condition.name).cloned();
    let all: Vec<_> = benchmark.used_blocks().filter_map(weather).collect();
    let with = |effect: Effect| {
        let found = |w: &crate::record::ConditionWeather| {
            w.disturbances.iter().find(|d| d.effect == effect).map(|d| d.message.clone())
        };
        all.iter().filter_map(found).collect::<Vec<_>>()
    };
    // A gust that was not waited out disturbs what it fell into as a steady process does.
    let ratios = [with(Effect::Ratios), with(Effect::Block)].concat();
    let levels = with(Effect::Levels);
    let many = |n: usize| n as f64 > all.len() as f64 * DISTURBED_BLOCKS;
    let words = |messages: &[String]| {
        format!("{} ({} of {} blocks)", messages[0], messages.len().min(all.len()), all.len())
    };
    let name = Some(condition.name.as_str());
    let mut found = Vec::new();
    if many(ratios.len()) {
        let reason = words(&ratios);
        let caution = caution(CautionKind::Disturbed, name, None, None, reason.clone());
        found.push(Found { caution, spoiled: Some(Spoiled::Disturbed(reason)) });
    }
    if many(levels.len()) {
        let caution = caution(CautionKind::DisturbedLevels, name, None, None, words(&levels));
        found.push(Found { caution, spoiled: None });
    }
    found
}

/// Whether the generator, and not the member, was the limit: in the median of its blocks.
fn limited(
    benchmark: &Benchmark,
    levels: &[Level],
    condition: &Condition,
    member: &Member,
) -> Option<Found> {
    let cells: Vec<&Cell> = benchmark
        .used_blocks()
        .flat_map(|b| &b.cells)
        .filter(|c| c.condition == condition.name && c.member == member.name && c.is_usable())
        .collect();
    let median = |f: &dyn Fn(&Cell) -> Option<f64>| {
        quantile::median(&cells.iter().filter_map(|c| f(c)).collect::<Vec<_>>())
    };
    let cpus = benchmark.run.layout.subject.len() as f64;
    let workers = member.workers.map_or(cpus, |n| f64::from(n).min(cpus));
    let reason = busy(median(&generator_busy), median(&|c| Some(service_busy(c)? / workers)))
        .or_else(|| little(median(&|c| in_use(c, condition))))
        .or_else(|| near_ceiling(benchmark, levels, condition, member))?;
    let (name, who) = (Some(condition.name.as_str()), Some(member.name.as_str()));
    let caution = caution(CautionKind::GeneratorLimited, name, who, None, reason.clone());
    Some(Found { caution, spoiled: Some(Spoiled::GeneratorLimited(reason)) })
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn busy(generator: Option<f64>, service: Option<f64>) -> Option<String> {
    let (generator, service) = (generator?, service?);
    (generator >= f64::from(BUSY_PERMILLE) / 1000.0 && service < SERVICE_BUSY).then(|| {
        let (generator, service) = (percent(generator), percent(service));
        format!("its busiest thread was {generator} busy or waiting for a CPU, the service's CPUs {service} busy")
    })
}

/// Of the busiest thread, over all slices: the time for which it ran or waited for a CPU.
fn generator_busy(cell: &Cell) -> Option<f64> {
    let s = &cell.slices;
    let mut spent = 0.0;
    for (permille, wall_ns) in s.generator_busiest_permille.iter().zip(&s.wall_ns) {
        spent += f64::from((*permille)?) / 1000.0 * *wall_ns as f64;
    }
    Some(spent / s.wall_ns.iter().sum::<u64>().max(1) as f64)
}

/// CPUs that the member kept busy, over all slices.
fn service_busy(cell: &Cell) -> Option<f64> {
    let spent: u64 = cell.slices.cpu_ns.iter().copied().sum::<Option<u64>>()?;
    Some(spent as f64 / cell.slices.wall_ns.iter().sum::<u64>().max(1) as f64)
}

/// Little's law: requests under way, on average, for each connection. `None` where more than
/// 1 % had to be opened anew: that takes time too, and is the service's.
fn in_use(cell: &Cell, condition: &Condition) -> Option<f64> {
    let settle_ns = condition.settle_ms * 1_000_000;
    let slices_ns = (settle_ns + cell.window_ns) * cell.slices.in_flight_ns.len() as u64;
    let in_flight_ns: u64 = cell.slices.in_flight_ns.iter().sum();
    let whole_ns = slices_ns as f64 * condition.connections as f64;
    let few = cell.reconnects.saturating_mul(100) <= condition.connections as u64;
    (few && slices_ns > 0).then(|| in_flight_ns as f64 / whole_ns)
}

fn little(in_use: Option<f64>) -> Option<String> {
    let share = in_use.filter(|share| *share < LITTLE)?;
    Some(format!("connections were in use {} of the time (Little's law)", percent(share)))
}

fn near_ceiling(
    benchmark: &Benchmark,
    levels: &[Level],
    condition: &Condition,
    member: &Member,
) -> Option<String> {
    let ceiling = benchmark.members.iter().find(|m| m.control == Some(Control::Ceiling))?;
    let throughput = |who: &Member| {
        let mut all = levels.iter().filter(|l| l.metric == "throughput");
        all.find(|l| l.condition == condition.name && l.member == who.name)?.value
    };
    let share = throughput(member)? / throughput(ceiling)?;
    (share >= CEILING_SHARE)
        .then(|| format!("it reached {} of the null server's throughput", percent(share)))
}

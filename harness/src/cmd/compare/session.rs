//! A run under way: what it has yielded so far, and where that is kept.

use super::super::progress::Progress;
use super::super::{Interrupted, say};
use crate::experiment::{Bench, Stopped, block, memory};
use crate::plan::BlockPlan;
use crate::record::folder::Entry;
use crate::record::{Benchmark, Block, RunFolder};
use crate::results::{self, maximum};
use crate::scenario::Request;
use crate::verdict::{self, StoppedBy};
use std::sync::Arc;
use std::time::Duration;

/// How often a block that the machine spoiled is repeated.
const REPEATS: usize = 2;

/// See the module.
pub struct Session {
    pub benchmark: Benchmark,
    pub folder: RunFolder,
    pub progress: Progress,
}

impl Session {
    /// All blocks of the plan, those that the machine spoils again.
    pub fn blocks(&mut self, bench: &Bench<'_>) -> Result<(), Stopped> {
        let preset = &bench.plan.preset;
        for number in 0..preset.blocks {
            let done = self.benchmark.blocks.iter().filter(|b| b.number == number);
            if done.clone().any(|b| b.invalid.is_empty()) {
                continue;
            }
            let attempts = done.count()..=REPEATS;
            for attempt in attempts {
                let label = format!("block {} of {}", number + 1, preset.blocks);
                let block = self.block(bench, &bench.plan.block(number), attempt, &label)?;
                self.folder.append(&Entry::Block(&block))?;
                let stands = block.invalid.is_empty();
                let why: Vec<&str> = block.invalid.iter().map(|d| d.message.as_str()).collect();
                self.progress.finished(&label);
                if !stands {
                    say(&format!("{label} does not stand: {}", why.join("; ")));
                }
                self.benchmark.blocks.push(block);
                // A machine that spoils block after block will spoil the repeats too.
                if stands || self.repeated() >= preset.blocks / 2 {
                    break;
                }
            }
            if preset.stops_when_narrow && self.is_narrow(number + 1)? {
                self.benchmark.run.stopped_by = "width".to_owned();
                break;
            }
        }
        self.rechecks(bench)
    }

    fn repeated(&self) -> usize {
        self.benchmark.blocks.iter().filter(|b| b.attempt > 0).count()
    }

    fn is_narrow(&self, blocks: usize) -> Result<bool, Stopped> {
        if !verdict::LOOKS.contains(&blocks) {
            return Ok(false);
        }
        let primary = results::primary(&self.benchmark).map_err(anyhow::Error::msg)?;
        let borrowed: Vec<_> = primary.iter().map(|(zone, d)| (*zone, d.as_slice())).collect();
        Ok(verdict::stop(blocks, &borrowed) == Some(StoppedBy::Width))
    }

    fn block(
        &mut self,
        bench: &Bench<'_>,
        plan: &BlockPlan,
        attempt: usize,
        label: &str,
    ) -> Result<Block, Stopped> {
        // A step is a round, of warm-up or of slices; see `experiment::block`.
        let conditions = || plan.conditions.iter().map(|(c, _)| &bench.plan.conditions[*c]);
        let rounds: usize = conditions().map(|c| c.rounds).sum();
        let steps = rounds + conditions().count() * bench.plan.preset.warm_up_slices;
        // What is not in the plan takes time, but is no progress.
        let planned = attempt == 0 && plan.number < bench.plan.preset.blocks;
        let length = if planned { bench.plan.block_duration() } else { Duration::ZERO };
        let step = length / u32::try_from(steps.max(1)).unwrap_or(u32::MAX);
        let progress = &mut self.progress;
        let outcome = block::run(bench, plan, attempt, &mut || progress.advance(step, label))?;
        for (member, (runtime, workers)) in outcome.said {
            let member = &mut self.benchmark.members[member];
            member.runtime = Some(runtime);
            member.workers = Some(workers);
        }
        Ok(outcome.block)
    }

    /// Further blocks of what had a surprising maximum that the machine does not explain.
    fn rechecks(&mut self, bench: &Bench<'_>) -> Result<(), Stopped> {
        let preset = &bench.plan.preset;
        if !preset.is_measurement() {
            return Ok(());
        }
        let surprises = maximum::surprises(&self.benchmark).map_err(anyhow::Error::msg)?;
        let open = || surprises.iter().filter(|s| !s.is_explained());
        let index = |all: &[String], name: &str| all.iter().position(|n| n == name);
        let names: Vec<String> = bench.plan.conditions.iter().map(|c| c.name.clone()).collect();
        let members: Vec<usize> =
            open().filter_map(|s| index(&bench.plan.members, &s.member)).collect();
        let conditions: Vec<usize> = open().filter_map(|s| index(&names, &s.condition)).collect();
        for recheck in self.benchmark.rechecks.len()..maximum::RECHECKS {
            if members.is_empty() {
                break;
            }
            let label = format!("recheck {} of {} (maxima)", recheck + 1, maximum::RECHECKS);
            let plan = bench.plan.block(preset.blocks + recheck).only(&members, &conditions);
            let block = self.block(bench, &plan, 0, &label)?;
            self.folder.append(&Entry::Recheck(&block))?;
            self.progress.finished(&label);
            self.benchmark.rechecks.push(block);
        }
        Ok(())
    }

    /// The memory runs that are not there yet.
    pub fn memory(&mut self, bench: &Bench<'_>, pools: &[Arc<[Request]>]) -> Result<(), Stopped> {
        let runs = bench.plan.memory();
        let done: Vec<usize> = self.benchmark.memory.iter().map(|m| m.number).collect();
        for run in runs.iter().filter(|run| !done.contains(&run.number)) {
            let outcome = memory::run(bench, run, &self.benchmark.run.memory_load, pools)?;
            let label = format!(
                "memory run {} of {} ({})",
                run.number + 1,
                runs.len(),
                bench.plan.members[run.member]
            );
            match outcome {
                Ok(record) => {
                    self.folder.append(&Entry::Memory(&record))?;
                    self.benchmark.memory.push(record);
                }
                Err(event) => {
                    say(&format!("{label}: {}", event.message));
                    self.folder.append(&Entry::Event(&event))?;
                    self.benchmark.events.push(event);
                }
            }
            self.progress.advance(bench.plan.memory_duration(), &label);
            self.progress.finished(&label);
        }
        Ok(())
    }

    /// Computes the results of what there is and writes the roll-up, whatever ended the run.
    /// Gives what went wrong beside what was measured: that is shown in any case.
    pub fn finish(
        mut self,
        outcome: Result<(), Stopped>,
    ) -> anyhow::Result<(Benchmark, Option<anyhow::Error>)> {
        drop(self.progress);
        if self.benchmark.blocks.is_empty() && self.benchmark.memory.is_empty() {
            self.folder.discard();
            return Err(match outcome {
                Err(Stopped::Failed(error)) => error,
                _ => Interrupted.into(),
            });
        }
        let (stopped_by, failure) = match outcome {
            Ok(()) if !self.benchmark.run.stopped_by.is_empty() => ("width", None),
            Ok(()) if self.benchmark.run.preset.stops_when_narrow => ("cap", None),
            Ok(()) => ("plan", None),
            Err(Stopped::Interrupted) => ("interrupt", None),
            Err(Stopped::Failed(error)) => ("failure", Some(error)),
        };
        stopped_by.clone_into(&mut self.benchmark.run.stopped_by);
        results::finish(&mut self.benchmark).map_err(anyhow::Error::msg)?;
        let written = self.folder.write_benchmark(&self.benchmark);
        if let Ok(file) = &written {
            say(&format!("wrote {}", file.display()));
        }
        // The first thing that went wrong is the one to mend.
        Ok((self.benchmark, failure.or(written.err())))
    }
}

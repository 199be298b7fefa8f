//! A run under way: what it has yielded so far, and where that is kept.

use super::super::progress::Progress;
use super::super::{Interrupted, say};
use crate::experiment::{Bench, Stopped, block, memory};
use crate::record::folder::Entry;
use crate::record::{Benchmark, RunFolder};
use crate::results;
use crate::scenario::Request;
use std::sync::Arc;

/// A run under way: what it has yielded so far, and where that is kept.
pub struct Session {
    pub benchmark: Benchmark,
    pub folder: RunFolder,
    pub progress: Progress,
}

impl Session {
    pub fn blocks(&mut self, bench: &Bench<'_>) -> Result<(), Stopped> {
        let plan = bench.plan;
        let blocks = plan.preset.blocks;
        // A step is a round, of warm-up or of slices; see `experiment::block`.
        let rounds: usize = plan.conditions.iter().map(|c| c.rounds).sum();
        let steps = rounds + plan.conditions.len() * plan.preset.warm_up_slices;
        let step = plan.block_duration() / u32::try_from(steps.max(1)).unwrap_or(u32::MAX);
        for number in 0..blocks {
            let label = format!("block {} of {blocks}", number + 1);
            let progress = &mut self.progress;
            let outcome =
                block::run(bench, &plan.block(number), &mut || progress.advance(step, &label))?;
            for (member, (runtime, workers)) in outcome.said {
                let member = &mut self.benchmark.members[member];
                member.runtime = Some(runtime);
                member.workers = Some(workers);
            }
            self.folder.append(&Entry::Block(&outcome.block))?;
            self.progress.finished(&label);
            self.benchmark.blocks.push(outcome.block);
        }
        Ok(())
    }

    pub fn memory(&mut self, bench: &Bench<'_>, pools: &[Arc<[Request]>]) -> Result<(), Stopped> {
        let runs = bench.plan.memory();
        for run in &runs {
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
            Ok(()) => ("plan", None),
            Err(Stopped::Interrupted) => ("interrupt", None),
            Err(Stopped::Failed(error)) => ("failure", Some(error)),
        };
        stopped_by.clone_into(&mut self.benchmark.run.stopped_by);
        self.benchmark.results = results::compute(&self.benchmark).map_err(anyhow::Error::msg)?;
        let written = self.folder.write_benchmark(&self.benchmark);
        if let Ok(file) = &written {
            say(&format!("wrote {}", file.display()));
        }
        // The first thing that went wrong is the one to mend.
        Ok((self.benchmark, failure.or(written.err())))
    }
}

//! A run under way: what it has yielded so far, and where that is kept.

use super::super::progress::Progress;
use super::super::{Interrupted, say};
use crate::experiment::{Bench, Stopped, block, memory};
use crate::plan::BlockPlan;
use crate::record::folder::Entry;
use crate::record::{Benchmark, Block, Member, Ready, RunFolder};
use crate::results::{self, maximum};
use crate::scenario::Request;
use crate::verdict::{self, StoppedBy};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How often a block that the machine spoiled is repeated.
const REPEATS: usize = 2;

/// See the module.
pub struct Session {
    pub benchmark: Benchmark,
    pub folder: RunFolder,
    /// Nothing was there before: the folder may go where nothing comes to be there.
    pub is_new: bool,
    pub progress: Progress,
}

impl Session {
    /// All blocks of the plan, those that the machine spoils again.
    pub fn blocks(&mut self, bench: &Bench<'_>) -> Result<(), Stopped> {
        let preset = &bench.plan.preset;
        for number in 0..preset.blocks {
            while self.is_due(number, preset.blocks) {
                let attempt = self.attempts(number);
                let label = format!("block {} of {}", number + 1, preset.blocks);
                let block = self.block(bench, &bench.plan.block(number), attempt, &label)?;
                self.folder.append(&Entry::Block(Cow::Borrowed(&block)))?;
                let why: Vec<&str> = block.invalid.iter().map(|d| d.message.as_str()).collect();
                self.progress.finished(&label);
                if !block.invalid.is_empty() {
                    say(&format!("{label} does not stand: {}", why.join("; ")));
                }
                self.benchmark.blocks.push(block);
            }
            // A look that was passed is not taken again with what came later.
            let is_last = self.benchmark.blocks.iter().all(|b| b.number <= number);
            if preset.stops_when_narrow && is_last && self.is_narrow(number + 1)? {
                self.benchmark.run.stopped_by = "width".to_owned();
                break;
            }
        }
        self.rechecks(bench)
    }

    /// How often block `number` was measured.
    fn attempts(&self, number: usize) -> usize {
        self.benchmark.blocks.iter().filter(|b| b.number == number).count()
    }

    /// Whether block `number` of so many is to be measured, or measured again.
    fn is_due(&self, number: usize, blocks: usize) -> bool {
        let mut done = self.benchmark.blocks.iter().filter(|b| b.number == number);
        match self.attempts(number) {
            0 => true,
            n if n > REPEATS || done.any(|b| b.invalid.is_empty()) => false,
            // A machine that spoils block after block will spoil the repeats too.
            _ => self.repeated() < blocks / 2,
        }
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
        let news = news(&mut self.benchmark.members, outcome.said);
        if !news.is_empty() {
            self.folder.append(&Entry::Ready(news.into()))?;
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
            self.folder.append(&Entry::Recheck(Cow::Borrowed(&block)))?;
            self.progress.finished(&label);
            self.benchmark.rechecks.push(block);
        }
        Ok(())
    }

    /// The memory runs that are not there yet.
    pub fn memory(&mut self, bench: &Bench<'_>, pools: &[Arc<[Request]>]) -> Result<(), Stopped> {
        let runs = bench.plan.memory();
        // One that failed is not repeated either.
        let done = self.benchmark.memory.len() + self.benchmark.failed_memory_runs();
        for run in runs.iter().skip(done) {
            let outcome = memory::run(bench, run, &self.benchmark.run.memory_load, pools)?;
            let label = format!(
                "memory run {} of {} ({})",
                run.number + 1,
                runs.len(),
                bench.plan.members[run.member]
            );
            match outcome {
                Ok(record) => {
                    self.folder.append(&Entry::Memory(Cow::Borrowed(&record)))?;
                    self.benchmark.memory.push(record);
                }
                Err(event) => {
                    say(&format!("{label}: {}", event.message));
                    self.folder.append(&Entry::Event(Cow::Borrowed(&event)))?;
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
            if self.is_new {
                self.folder.discard();
            }
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
        if !self.benchmark.is_finished() || written.is_err() {
            let folder = self.folder.path().display();
            say(&format!("`harness compare --resume {folder}` goes on with the run"));
        }
        // The first thing that went wrong is the one to mend.
        Ok((self.benchmark, failure.or(written.err())))
    }
}

/// Notes what running services said of themselves; gives what was not known before.
fn news(members: &mut [Member], said: BTreeMap<usize, (String, u32)>) -> Vec<Ready> {
    let mut news = Vec::new();
    for (member, (runtime, workers)) in said {
        let member = &mut members[member];
        if member.runtime.as_ref() != Some(&runtime) || member.workers != Some(workers) {
            member.runtime = Some(runtime.clone());
            member.workers = Some(workers);
            news.push(Ready { member: member.name.clone(), runtime, workers });
        }
    }
    news
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::judge::{Disturbance, Effect};
    use crate::record::sample;

    /// A session whose journal holds blocks of these numbers; `true`: it stands.
    fn session(dir: &tempfile::TempDir, blocks: &[(usize, bool)]) -> Session {
        let mut session = Session {
            benchmark: sample::begin(),
            folder: RunFolder::create(&dir.path().join("run")).expect("a folder"),
            is_new: false,
            progress: Progress::new(Duration::ZERO),
        };
        for &(number, stands) in blocks {
            let mut block = sample::block(number, session.attempts(number));
            if !stands {
                let (cause, message) = ("gust".to_owned(), "a gust".to_owned());
                block.invalid.push(Disturbance { effect: Effect::Block, cause, message });
            }
            session.benchmark.blocks.push(block);
        }
        session
    }

    #[test]
    fn a_journal_goes_on_with_the_block_or_attempt_that_is_due() {
        type Case = (usize, &'static [(usize, bool)], &'static [usize]);
        let table: [Case; 7] = [
            (3, &[], &[0, 1, 2]),
            (3, &[(0, true)], &[1, 2]),
            (3, &[(0, true), (1, true), (2, true)], &[]),
            // The repeat of a block that the machine spoiled.
            (6, &[(0, true), (1, false)], &[1, 2, 3, 4, 5]),
            (6, &[(0, false), (0, true)], &[1, 2, 3, 4, 5]),
            // Twice repeated is enough, and so are half as many repeats as blocks.
            (6, &[(0, false), (0, false), (0, false)], &[1, 2, 3, 4, 5]),
            (2, &[(0, false), (0, true), (1, false)], &[]),
        ];
        for (blocks, there, due) in table {
            let dir = tempfile::tempdir().expect("temporary folder");
            let session = session(&dir, there);
            let found: Vec<usize> = (0..blocks).filter(|&n| session.is_due(n, blocks)).collect();
            assert_eq!(found, due, "{there:?}");
        }
    }

    #[test]
    fn what_services_say_is_kept_once() {
        let mut members = sample::begin().members;
        let said = || BTreeMap::from([(1, ("r 2".to_owned(), 4))]);
        let ready = Ready { member: "b".to_owned(), runtime: "r 2".to_owned(), workers: 4 };
        assert_eq!(news(&mut members, said()), [ready]);
        assert_eq!(members[1].workers, Some(4));
        assert_eq!(news(&mut members, said()), []);
    }
}

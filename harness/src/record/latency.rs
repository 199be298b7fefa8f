//! Histograms as they stand in `benchmark.json`.

use crate::load::tally::Tally;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// A histogram with what it cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// HdrHistogram, V2 compressed, base64; nanoseconds.
    pub histogram: String,
    /// Values in it.
    pub n: u64,
    /// Values beyond its range.
    pub out_of_range: u64,
    /// Exact longest, ns; null when there is none.
    pub max_ns: Option<u64>,
}

impl Latency {
    /// Packs the latency of right answers.
    pub fn pack(tally: &Tally) -> Self {
        let some = !tally.latency.is_empty() || tally.out_of_range > 0;
        Self {
            out_of_range: tally.out_of_range,
            max_ns: some.then_some(tally.max_ns),
            ..Self::of(&tally.latency)
        }
    }

    /// Packs a histogram; its longest is known to three digits only.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(histogram, &mut bytes)
            .unwrap_or_else(|e| unreachable!("writing to memory cannot fail: {e}"));
        Self {
            histogram: BASE64_STANDARD.encode(bytes),
            n: histogram.len(),
            out_of_range: 0,
            max_ns: (!histogram.is_empty()).then(|| histogram.max()),
        }
    }

    /// Unpacks the histogram.
    ///
    /// # Errors
    /// When it is damaged or holds another number of values than it says.
    pub fn unpack(&self) -> Result<Histogram<u64>, String> {
        let bytes = BASE64_STANDARD
            .decode(&self.histogram)
            .map_err(|e| format!("the histogram is no base64: {e}"))?;
        let histogram: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|e| format!("the histogram does not decode: {e}"))?;
        if histogram.len() != self.n {
            return Err(format!("the histogram holds {} values, not {}", histogram.len(), self.n));
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::connection::Flight;
    use std::time::{Duration, Instant};

    #[test]
    fn a_histogram_survives_packing_and_damage_is_found() {
        let mut tally = Tally::default();
        let sent = Instant::now();
        let flight = Flight::unpaced(sent);
        for i in 1..=10_000 {
            tally.succeed(&flight, sent + Duration::from_micros(i));
        }
        let packed = Latency::pack(&tally);
        let unpacked = packed.unpack().expect("unpacks");
        assert_eq!(unpacked.len(), 10_000);
        assert_eq!(unpacked.value_at_quantile(0.5), tally.latency.value_at_quantile(0.5));
        assert_eq!(packed.max_ns, Some(10_000_000));
        let other_n = Latency { n: 9_999, ..packed.clone() };
        assert!(other_n.unpack().is_err());
        let cut = Latency { histogram: packed.histogram[..40].to_owned(), ..packed };
        assert!(cut.unpack().is_err());
        assert_eq!(Latency::pack(&Tally::default()).max_ns, None);
    }
}

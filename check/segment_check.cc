#include "check/segment_check.h"

#include <algorithm>
#include <string>

#include "log/log_reader.h"

namespace braiddb {
namespace {

// A bound of the sequence numbers behind the boundary, far above the number of writes between two checkpoints.
constexpr uint64_t kMostUnflushedWrites = uint64_t{1} << 36;

// Checks that the valid prefix of a segment ends where it should: at the sealed size, at the size in the run's record, or where
// a crash may have cut the last write of an open segment.
void CheckEnd(const Media& media, const MediaSegment& segment, LogReader& reader, uint64_t last_sequence, Findings* findings) {
  const PmPtr end = segment.start() + reader.end();
  if (segment.state == SegmentState::kCopies) return;
  if (segment.level_bytes != 0) {
    if (reader.end() != segment.level_bytes) findings->Add("a damaged entry", media.Place(end) + ", segment of a run");
    return;
  }
  if (segment.state == SegmentState::kOpen) {
    reader.LimitSequence(std::max(last_sequence, media.manifest().log_boundary) + kMostUnflushedWrites);
    reader.LimitHashing(LogReader::kHashedPerByte * segment.capacity);
    const uint64_t behind = media.manifest().may_lose_writes ? UINT64_MAX : reader.FindWholeWrite(reader.end());
    if (behind != UINT64_MAX) {
      findings->Add("a damaged log entry: intact ones lie behind it, " + std::to_string(behind - reader.end()) + " bytes on",
                    media.Place(end) + ", open segment");
    }
  } else if (reader.end() != segment.sealed_bytes) {
    findings->Add("a damaged log entry", media.Place(end) + ", sealed segment");
  } else if (last_sequence != segment.sealed_last_sequence) {
    findings->Add("a segment's largest sequence number is not the one that its descriptor has", media.Place(segment.start()));
  }
}

// Collects entries of unlisted families that are not marked dead: a drop marks all entries before the MANIFEST forgets the
// family.
class Strays {
 public:
  void Add(PmPtr place, uint32_t family) {
    if (count_++ > 0) return;
    first_ = place;
    family_ = family;
  }
  void Report(const Media& media, Findings* findings) const {
    if (count_ == 0) return;
    const std::string others = count_ == 1 ? "" : ", and " + std::to_string(count_ - 1) + " more in its segment";
    findings->Add(
        "a log entry that is not marked dead, of column family " + std::to_string(family_) + ", which is not there" + others,
        media.Place(first_));
  }

 private:
  uint64_t count_ = 0;
  PmPtr first_;
  uint32_t family_ = 0;
};

// Reads and classifies the entries of one segment.
SegmentContents CheckSegment(const Media& media, const MediaSegment& segment, Findings* findings) {
  SegmentContents contents;
  if (segment.state == SegmentState::kCopies && !media.copies_count()) return contents;
  LogReader reader(media.Resolve(segment.start()), segment.entry_seed, segment.limit());
  uint64_t last_sequence = 0;
  Strays strays;
  while (const LogEntry* entry = reader.NextValid()) {
    const uint64_t sequence = entry->sequence();
    last_sequence = std::max(last_sequence, sequence);
    if (entry->type() > kLastEntryType) {
      findings->Add("a log entry of an unknown type", media.Place(segment.start() + reader.entry_offset()));
    }
    const bool replayed = sequence >= media.manifest().log_boundary;
    const Listed listed = media.IsListed(entry->family());
    if (media.IsGarbage(*entry)) {
      ++contents.dead;
    } else if (listed == Listed::kDropped || (!replayed && entry->is_obsolete())) {
      ++contents.dead;
    } else if (listed == Listed::kNo) {
      strays.Add(segment.start() + reader.entry_offset(), entry->family());
    } else if (replayed) {
      ++contents.to_replay;
    } else {
      contents.live.Add(segment.start() + reader.entry_offset());
    }
  }
  CheckEnd(media, segment, reader, last_sequence, findings);
  strays.Report(media, findings);
  return contents;
}

// What CheckSegments reads; bytes.
uint64_t BytesOfLog(const Media& media) {
  uint64_t bytes = 0;
  for (const MediaSegment& segment : media.segments()) bytes += segment.holds_log() ? segment.limit() : 0;
  return bytes;
}

}  // namespace

std::vector<SegmentContents> CheckSegments(const Media& media, const std::function<void(uint64_t, uint64_t)>& progress,
                                           Findings* findings) {
  std::vector<SegmentContents> contents(media.segments().size());
  const uint64_t total = BytesOfLog(media);
  uint64_t done = 0;
  if (progress) progress(done, total);
  for (size_t i = 0; i < contents.size(); ++i) {
    const MediaSegment& segment = media.segments()[i];
    if (!segment.holds_log()) continue;
    contents[i] = CheckSegment(media, segment, findings);
    done += segment.limit();
    if (progress) progress(done, total);
  }
  return contents;
}

ReachedEntries MakeReachedEntries(const Media& media, const std::vector<SegmentContents>& contents,
                                  const std::function<void(uint64_t, uint64_t)>& progress) {
  if (!progress) return ReachedEntries(contents.size());
  const uint64_t total = BytesOfLog(media);
  uint64_t live = 0;
  for (const SegmentContents& segment : contents) live += segment.live.count;
  progress(0, total);
  // Damage may lead to more entries than count.
  return ReachedEntries(contents.size(), [progress, total, live](uint64_t entries) {
    const double share = live == 0 ? 1 : static_cast<double>(entries) / static_cast<double>(live);
    progress(std::min(total, static_cast<uint64_t>(static_cast<double>(total) * share)), total);
  });
}

}  // namespace braiddb

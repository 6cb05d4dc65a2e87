#include "tests/crash_test/mutants.h"

namespace braiddb::test {
namespace {

// The classes of bugs that were found in published stores on persistent memory.
constexpr char kMarkFirst[] = "commit mark before payload";
constexpr char kExtent[] = "wrong flush target or extent";
constexpr char kNeverFlushed[] = "metadata never flushed";
constexpr char kNotAtomic[] = "multi-word update taken for atomic";
constexpr char kHalfDone[] = "structure change half done, not repaired";
constexpr char kSentinel[] = "persistent sentinel never released";
constexpr char kLeak[] = "allocation leak";
constexpr char kOutside[] = "update outside the logged set";
constexpr char kUnpersisted[] = "effect based on unpersisted stores";
constexpr char kAckFirst[] = "ack before durable";
constexpr char kRecovery[] = "recovery's own writes not persisted";
constexpr char kFound[] = "what a killed process left in the caches taken for durable";
constexpr char kTorn[] = "store torn by the compiler";

constexpr Mutant kMutants[] = {
    {"entry-not-flushed", kAckFirst, "db/write.cc"},
    {"entry-flush-too-short", kExtent, "db/write.cc"},
    {"ack-before-fence", kAckFirst, "db/append.h"},
    {"batch-unmarked", kNotAtomic, "db/write.cc"},
    {"cut-batch-trusted", kHalfDone, "log/log_reader.cc"},
    {"torn-entry-trusted", kMarkFirst, "log/log_reader.cc"},
    {"value-not-in-checksum", kMarkFirst, "log/log_entry.h"},
    {"flush-range-not-aligned", kExtent, "pmem/persistence.cc"},
    {"flush-before-writers-left", kUnpersisted, "db/flush.cc"},
    {"checkpoint-not-flushed", kUnpersisted, "compaction/checkpoint.cc"},
    {"checkpoint-flush-too-short", kExtent, "compaction/checkpoint.cc"},
    {"checkpoint-pointers-last", kMarkFirst, "db/flush.cc"},
    {"boundary-stays", kHalfDone, "db/flush.cc"},
    {"boundary-too-far", kAckFirst, "db/flush.cc"},
    {"list-end-left-out", kHalfDone, "compaction/list_builder.h"},
    {"merge-not-announced", kHalfDone, "db/compact.cc"},
    {"merge-not-resumed", kHalfDone, "db/recover.cc"},
    {"merge-not-flushed", kNeverFlushed, "compaction/merge_journal.cc"},
    {"merge-not-fenced", kUnpersisted, "compaction/merge_journal.cc"},
    {"merge-flushes-next-line", kExtent, "compaction/merge_journal.cc"},
    {"journal-not-flushed", kMarkFirst, "compaction/merge_journal.cc"},
    {"journal-not-fenced", kMarkFirst, "compaction/merge_journal.cc"},
    {"journal-flush-too-short", kExtent, "compaction/merge_journal.cc"},
    {"journal-one-buffer", kNotAtomic, "compaction/merge_journal.cc"},
    {"journal-numbers-restart", kRecovery, "compaction/merge_journal.cc"},
    {"redo-left-out", kHalfDone, "compaction/merge_journal.cc"},
    {"redo-not-persisted", kRecovery, "compaction/merge_journal.cc"},
    {"redo-forgets-progress", kRecovery, "compaction/merge_journal.cc"},
    {"redo-trusts-torn-record", kMarkFirst, "compaction/merge_journal.cc"},
    {"progress-too-early", kMarkFirst, "compaction/zipper.cc"},
    {"head-checksum-left-out", kOutside, "compaction/zipper.cc"},
    {"head-checksum-outside-journal", kOutside, "compaction/zipper.cc"},
    {"link-outside-journal", kOutside, "compaction/zipper.cc"},
    {"level-mark-not-flushed", kNeverFlushed, "compaction/key_merger.cc"},
    {"level-marks-not-fenced", kMarkFirst, "compaction/key_merger.cc"},
    {"tombstone-marked-early", kMarkFirst, "compaction/key_merger.cc"},
    {"filtered-marked-early", kMarkFirst, "compaction/key_merger.cc"},
    {"run-not-flushed", kMarkFirst, "levels/sorted_runs/run_writer.cc"},
    {"run-record-not-flushed", kMarkFirst, "levels/sorted_runs/run_writer.cc"},
    {"run-marks-not-flushed", kLeak, "levels/sorted_runs/run_merge.cc"},
    {"runs-not-fenced", kMarkFirst, "skiplist/sorted_runs.cc"},
    {"run-link-not-flushed", kNeverFlushed, "skiplist/sorted_runs.cc"},
    {"hash-slot-not-flushed", kNeverFlushed, "hash_index/hash_index.cc"},
    {"hash-new-slot-not-flushed", kNeverFlushed, "hash_index/hash_index.cc"},
    {"hash-page-not-flushed", kMarkFirst, "hash_index/hash_index.cc"},
    {"hash-page-not-fenced", kMarkFirst, "hash_index/hash_index.cc"},
    {"hash-state-not-flushed", kNeverFlushed, "hash_index/hash_index.cc"},
    {"hash-old-state-not-persisted", kUnpersisted, "hash_index/hash_index.cc"},
    {"hash-overflow-not-flushed", kMarkFirst, "hash_index/hash_index.cc"},
    {"hash-overflow-link-not-persisted", kUnpersisted, "hash_index/hash_index.cc"},
    {"hash-unlink-not-persisted", kUnpersisted, "hash_index/hash_index.cc"},
    {"hash-mark-not-persisted", kUnpersisted, "hash_index/hash_index.cc"},
    {"hash-changes-not-fenced", kNeverFlushed, "levels/hybrid/hybrid_merge.cc"},
    {"filter-drops-above-older", kHalfDone, "compaction/entry_filter.h"},
    {"filter-write-unchecked", kUnpersisted, "db/background_write.cc"},
    {"leaf-not-flushed", kMarkFirst, "nvtree/leaf.cc"},
    {"elements-flush-too-short", kExtent, "nvtree/leaf.cc"},
    {"elements-not-fenced", kMarkFirst, "nvtree/leaf.cc"},
    {"element-count-not-flushed", kNeverFlushed, "nvtree/leaf.cc"},
    {"leaves-not-fenced", kMarkFirst, "leaf_tree/changes.cc"},
    {"leaf-link-not-persisted", kUnpersisted, "leaf_tree/changes.cc"},
    {"emptied-leaf-link-not-persisted", kUnpersisted, "leaf_tree/rebuild.cc"},
    {"lb-changed-line-not-flushed", kMarkFirst, "lb_tree/lb_leaf_changes.cc"},
    {"lb-changed-line-0-not-flushed", kMarkFirst, "lb_tree/lb_leaf_changes.cc"},
    {"lb-changed-value-not-flushed", kNeverFlushed, "lb_tree/lb_leaf_changes.cc"},
    {"lb-changed-header-not-flushed", kNeverFlushed, "lb_tree/lb_leaf_changes.cc"},
    {"lb-removals-not-fenced", kUnpersisted, "levels/lb_tree/lb_entry_tree.cc"},
    {"lb-entry-split-not-flushed", kNeverFlushed, "levels/lb_tree/lb_entry_tree.cc"},
    {"lb-changed-line-not-fenced", kMarkFirst, "levels/lb_tree/lb_entry_tree.cc"},
    {"leaf-space-not-persisted", kNeverFlushed, "index/leaf_space.cc"},
    {"image-not-forgotten", kSentinel, "leaf_tree/leaf_tree.cc"},
    {"family-listed-early", kMarkFirst, "db/families.cc"},
    {"purge-not-flushed", kLeak, "db/family_drop.cc"},
    {"family-forgotten-early", kLeak, "db/family_drop.cc"},
    {"manifest-slot-not-flushed", kMarkFirst, "lsm/manifest.cc"},
    {"manifest-slot-not-fenced", kMarkFirst, "lsm/manifest.cc"},
    {"manifest-flush-too-short", kExtent, "lsm/manifest.cc"},
    {"manifest-selector-first", kMarkFirst, "lsm/manifest.cc"},
    {"manifest-selector-not-flushed", kNeverFlushed, "lsm/manifest.cc"},
    {"manifest-selector-not-fenced", kUnpersisted, "lsm/manifest.cc"},
    {"manifest-one-slot", kNotAtomic, "lsm/manifest.cc"},
    {"manifest-growth-not-flushed", kNeverFlushed, "lsm/manifest.cc"},
    {"manifest-growth-frees-first", kMarkFirst, "lsm/manifest.cc"},
    {"metadata-check-stays", kUnpersisted, "pmem/region_root.cc"},
    {"flushed-copies-not-flushed", kNeverFlushed, "compaction/flush_copier.cc"},
    {"flushed-copies-sealed-first", kMarkFirst, "compaction/flush_copier.cc"},
    {"flushed-log-released-early", kMarkFirst, "db/flush.cc"},
    {"copies-not-flushed", kNeverFlushed, "compaction/relocation.cc"},
    {"copies-not-fenced", kMarkFirst, "compaction/relocation.cc"},
    {"copies-not-discarded", kLeak, "compaction/relocation.cc"},
    {"copies-sealed-early", kLeak, "db/relocate.cc"},
    {"operand-base-dropped", kHalfDone, "compaction/version_filter.h"},
    {"operand-base-not-replayed", kHalfDone, "recovery/replay.cc"},
    {"range-forgotten-early", kHalfDone, "db/range_sweep.cc"},
    {"range-boundary-ignored", kUnpersisted, "db/range_sweep.cc"},
    {"prepared-in-parts", kNotAtomic, "txn/prepared_records.cc"},
    {"prepared-forgotten-early", kNotAtomic, "txn/pessimistic_transaction.cc"},
    {"prepared-forgotten-late", kNotAtomic, "txn/pessimistic_transaction.cc"},
    {"commit-not-written", kAckFirst, "txn/transaction_base.cc"},
    {"rollback-keeps-updates", kHalfDone, "txn/transaction_base.cc"},
    {"segment-header-not-flushed", kNeverFlushed, "pmem/segment_directory.cc"},
    {"segment-header-not-fenced", kMarkFirst, "pmem/segment_directory.cc"},
    {"entry-seed-after-state", kMarkFirst, "pmem/segment_directory.cc"},
    {"seal-in-one-persist", kNotAtomic, "pmem/segment_directory.cc"},
    {"state-word-not-flushed", kNeverFlushed, "pmem/segment_directory.cc"},
    {"hole-before-free", kMarkFirst, "pmem/segment_allocator.cc"},
    {"state-word-torn", kTorn, "pmem/segment_directory.cc"},
    {"take-not-announced", kMarkFirst, "pmem/segment_directory.cc"},
    {"return-slot-first", kLeak, "pmem/segment_directory.cc"},
    {"return-not-finished", kSentinel, "pmem/segment_directory.cc"},
    {"allocation-not-finished", kLeak, "pmem/segment_directory.cc"},
    {"block-tag-not-flushed", kNeverFlushed, "pmem/segment_directory.cc"},
    {"block-count-first", kMarkFirst, "pmem/segment_directory.cc"},
    {"generation-word-torn", kTorn, "pmem/region_root.cc"},
    {"generation-limit-not-persisted", kNeverFlushed, "pmem/region_root.cc"},
    {"part-not-announced", kHalfDone, "pmem/region_files.cc"},
    {"announced-part-removed", kHalfDone, "pmem/region_files.cc"},
    {"creating-mark-stays", kSentinel, "pmem/region_files.cc"},
    {"open-segments-stay-open", kSentinel, "recovery/replay.cc"},
    {"replayed-pointers-not-persisted", kRecovery, "recovery/replay.cc"},
    {"sequence-not-restored", kRecovery, "recovery/replay.cc"},
    {"found-log-not-flushed", kFound, "recovery/replay.cc"},
    {"found-manifest-not-persisted", kFound, "lsm/manifest.cc"},
    {"found-record-not-persisted", kFound, "compaction/merge_journal.cc"},
    {"found-leaf-space-not-flushed", kFound, "index/leaf_space.cc"},
    {"found-leaves-not-flushed", kFound, "leaf_tree/rebuild.cc"},
    {"found-runs-not-flushed", kFound, "skiplist/sorted_runs.cc"},
    {"found-slots-not-flushed", kFound, "hash_index/hash_index.cc"},
};

}  // namespace

std::span<const Mutant> Mutants() { return kMutants; }

const Mutant* FindMutant(std::string_view name) {
  for (const Mutant& mutant : kMutants) {
    if (name == mutant.name) return &mutant;
  }
  return nullptr;
}

}  // namespace braiddb::test

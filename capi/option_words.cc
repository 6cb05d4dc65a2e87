#include "capi/option_words.h"

namespace braiddb::capi {
namespace {

constexpr Word kCompressions[] = {{0, "kNoCompression"},
                                  {1, "kSnappyCompression"},
                                  {2, "kZlibCompression"},
                                  {3, "kBZip2Compression"},
                                  {4, "kLZ4Compression"},
                                  {5, "kLZ4HCCompression"},
                                  {6, "kXpressCompression"},
                                  {7, "kZSTD"},
                                  {64, "kZSTDNotFinalCompression"},
                                  {255, "kDisableCompressionOption"}};
constexpr Word kCompactionStyles[] = {
    {0, "kCompactionStyleLevel"}, {1, "kCompactionStyleUniversal"}, {2, "kCompactionStyleFIFO"}, {3, "kCompactionStyleNone"}};
constexpr Word kStopStyles[] = {{0, "kCompactionStopStyleSimilarSize"}, {1, "kCompactionStopStyleTotalSize"}};
constexpr Word kCompactionPriorities[] = {{0, "kByCompensatedSize"},
                                          {1, "kOldestLargestSeqFirst"},
                                          {2, "kOldestSmallestSeqFirst"},
                                          {3, "kMinOverlappingRatio"},
                                          {4, "kRoundRobin"}};
constexpr Word kRecoveryModes[] = {{0, "kTolerateCorruptedTailRecords"},
                                   {1, "kAbsoluteConsistency"},
                                   {2, "kPointInTimeRecovery"},
                                   {3, "kSkipAnyCorruptedRecords"}};
constexpr Word kLogLevels[] = {{0, "DEBUG_LEVEL"}, {1, "INFO_LEVEL"},  {2, "WARN_LEVEL"},
                               {3, "ERROR_LEVEL"}, {4, "FATAL_LEVEL"}, {5, "HEADER_LEVEL"}};
constexpr Word kAccessHints[] = {{0, "NONE"}, {1, "NORMAL"}, {2, "SEQUENTIAL"}, {3, "WILLNEED"}};
constexpr Word kPrepopulations[] = {{0, "kDisable"}, {1, "kFlushOnly"}};
constexpr Word kTemperatures[] = {{0, "kUnknown"}, {4, "kHot"}, {8, "kWarm"}, {12, "kCold"}};
constexpr Word kCacheTiers[] = {{0, "kVolatileTier"}, {1, "kNonVolatileBlockTier"}};
constexpr Word kChecksums[] = {{0, "kNoChecksum"}, {1, "kCRC32c"}, {2, "kxxHash"}, {3, "kxxHash64"}, {4, "kXXH3"}};
constexpr Word kIndexes[] = {
    {0, "kBinarySearch"}, {1, "kHashSearch"}, {2, "kTwoLevelIndexSearch"}, {3, "kBinarySearchWithFirstKey"}};
constexpr Word kBlockIndexes[] = {{0, "kDataBlockBinarySearch"}, {1, "kDataBlockBinaryAndHash"}};
constexpr Word kShortenings[] = {{0, "kNoShortening"}, {1, "kShortenSeparators"}, {2, "kShortenSeparatorsAndSuccessor"}};
constexpr Word kPinnings[] = {{0, "kFallback"}, {1, "kNone"}, {2, "kFlushedAndSimilar"}, {3, "kAll"}};
constexpr Word kEncodings[] = {{0, "kPlain"}, {1, "kPrefix"}};

struct Enumeration {
  std::string_view name;
  std::span<const Word> words;
};
constexpr Enumeration kEnumerations[] = {
    {"access_hint_on_compaction_start", kAccessHints},
    {"blob_compression_type", kCompressions},
    {"bottommost_compression", kCompressions},
    {"checksum", kChecksums},
    {"compaction_pri", kCompactionPriorities},
    {"compaction_style", kCompactionStyles},
    {"compression", kCompressions},
    {"compression_per_level", kCompressions},
    {"data_block_index_type", kBlockIndexes},
    {"encoding_type", kEncodings},
    {"index_shortening", kShortenings},
    {"index_type", kIndexes},
    {"info_log_level", kLogLevels},
    {"last_level_temperature", kTemperatures},
    {"lowest_used_cache_tier", kCacheTiers},
    {"partition_pinning", kPinnings},
    {"prepopulate_blob_cache", kPrepopulations},
    {"prepopulate_block_cache", kPrepopulations},
    {"stop_style", kStopStyles},
    {"top_level_index_pinning", kPinnings},
    {"unpartitioned_pinning", kPinnings},
    {"wal_compression", kCompressions},
    {"wal_recovery_mode", kRecoveryModes},
};

}  // namespace

std::span<const Word> WordsOf(std::string_view name) {
  for (const Enumeration& enumeration : kEnumerations) {
    if (enumeration.name == name) return enumeration.words;
  }
  return {};
}

}  // namespace braiddb::capi

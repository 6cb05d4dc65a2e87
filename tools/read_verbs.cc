// braiddb get, scan, count, approximate-size: verbs that read keys and values.
#include <cstdio>
#include <optional>

#include "tools/database_verb.h"
#include "tools/interrupt.h"
#include "tools/progress.h"
#include "util/format.h"

namespace braiddb::tools {
namespace {

namespace po = boost::program_options;

// Keys in the form of bytes of the arguments. The slices of `read` point here.
struct Range {
  std::optional<std::string> begin;
  std::optional<std::string> end;
  std::optional<std::string> prefix;
};

bool ReadBound(const Session& session, const VerbArguments& arguments, const char* option, std::optional<std::string>* bound) {
  if (!arguments.Has(option)) return true;
  return ReadBytes(session, arguments.Get<std::string>(option), &bound->emplace());
}

// Returns false after it has printed an error.
bool ReadRange(const Session& session, const VerbArguments& arguments, Range* range) {
  return ReadBound(session, arguments, "begin", &range->begin) && ReadBound(session, arguments, "end", &range->end) &&
         ReadBound(session, arguments, "prefix", &range->prefix);
}

bool IsOutsideOf(const Range& range, Slice key) { return range.prefix && !key.starts_with(*range.prefix); }

// Visits the entries of the range until `visit` returns false.
template <class Visit>
Status Walk(const Session& session, const Range& range, bool reverse, const Visit& visit) {
  ColumnFamilyHandle* family = nullptr;
  if (Status status = session.Current(&family); !status.ok()) return status;
  ReadOptions read;
  read.total_order_seek = true;
  if (range.begin) read.iterate_lower_bound = *range.begin;
  if (range.end) read.iterate_upper_bound = *range.end;
  // A prefix is one range of keys only in the order of bytes.
  const bool seeks = range.prefix && !reverse && !range.begin && family->GetOptions().comparator == BytewiseComparator();
  const auto iterator = session.db->NewIterator(read, family);
  if (seeks) {
    iterator->Seek(*range.prefix);
  } else if (reverse) {
    iterator->SeekToLast();
  } else {
    iterator->SeekToFirst();
  }
  const InterruptGuard guard;
  while (iterator->Valid() && !IsInterrupted()) {
    if (IsOutsideOf(range, iterator->key())) {
      if (seeks) break;
    } else if (!visit(iterator->key(), iterator->value())) {
      break;
    }
    if (reverse) {
      iterator->Prev();
    } else {
      iterator->Next();
    }
  }
  return IsInterrupted() ? Status::Aborted("interrupted") : iterator->status();
}

uint64_t Estimate(const Session& session) {
  ColumnFamilyHandle* family = nullptr;
  uint64_t keys = 0;
  if (session.Current(&family).ok()) session.db->GetIntProperty(family, "braiddb.estimate-num-keys", &keys);
  return keys;
}

}  // namespace

void AddRangeOptions(VerbOptions add) {
  add("begin", po::value<std::string>()->value_name("KEY"), "the first key");
  add("end", po::value<std::string>()->value_name("KEY"), "the key behind the last one");
  add("prefix", po::value<std::string>()->value_name("KEY"), "only keys that begin with KEY");
}

void AddScanOptions(VerbOptions add) {
  AddRangeOptions(add);
  add("reverse", "from the last key to the first");
  add("limit", po::value<uint64_t>()->value_name("N"), "at most N keys");
  add("keys-only", "print no values");
}

int GetVerb(Session& session, const VerbArguments& arguments) {
  ColumnFamilyHandle* family = nullptr;
  if (Status status = session.Current(&family); !status.ok()) return Failed(status);
  const bool is_one = arguments.positional().size() == 1 && session.style.output == OutputForm::kRaw;
  RowPrinter rows(session.style, is_one ? std::vector<std::string>{"value"} : std::vector<std::string>{"key", "value"});
  int exit_code = kSound;
  for (const std::string& text : arguments.positional()) {
    std::string key;
    std::string value;
    if (!ReadBytes(session, text, &key)) return kCannotLook;
    const Status status = session.db->Get({}, family, key, &value);
    if (status.IsNotFound()) {
      std::fprintf(stderr, "braiddb: there is no key '%s'\n",
                   session.style.bytes == ByteForm::kRaw ? Escaped(text).c_str() : text.c_str());
      exit_code = kDamaged;
    } else if (!status.ok()) {
      return Failed(status);
    } else if (is_one) {
      rows.Print({value});
    } else {
      rows.Print({key, value});
    }
  }
  return exit_code;
}

int ScanVerb(Session& session, const VerbArguments& arguments) {
  Range range;
  if (!ReadRange(session, arguments, &range)) return kCannotLook;
  const bool keys_only = arguments.Has("keys-only");
  uint64_t left = arguments.Has("limit") ? arguments.Get<uint64_t>("limit") : ~uint64_t{0};
  RowPrinter rows(session.style, keys_only ? std::vector<std::string>{"key"} : std::vector<std::string>{"key", "value"});
  if (left == 0) return kSound;
  const Status status = Walk(session, range, arguments.Has("reverse"), [&](Slice key, Slice value) {
    if (keys_only) {
      rows.Print({key});
    } else {
      rows.Print({key, value});
    }
    return --left != 0;
  });
  return status.ok() ? kSound : Failed(status);
}

int CountVerb(Session& session, const VerbArguments& arguments) {
  Range range;
  if (!ReadRange(session, arguments, &range)) return kCannotLook;
  uint64_t keys = 0;
  Status status;
  {
    Progress progress("counting", Progress::Unit::kEntries, Estimate(session));
    status = Walk(session, range, false, [&](Slice, Slice) { return progress.Update(++keys), true; });
  }
  if (!status.ok()) return Failed(status);
  Facts facts;
  facts.Add("keys", keys);
  facts.Print(session.style);
  return kSound;
}

int ApproximateSizeVerb(Session& session, const VerbArguments& arguments) {
  Range range;
  if (!ReadRange(session, arguments, &range)) return kCannotLook;
  uint64_t keys = 0;
  uint64_t bytes = 0;
  Status status;
  {
    Progress progress("measuring", Progress::Unit::kEntries, Estimate(session));
    status = Walk(session, range, false, [&](Slice key, Slice value) {
      bytes += key.size() + value.size();
      return progress.Update(++keys), true;
    });
  }
  if (!status.ok()) return Failed(status);
  Facts facts;
  facts.Add("keys", keys);
  facts.Add("bytes", bytes);
  facts.Print(session.style);
  return kSound;
}

}  // namespace braiddb::tools

// Opens and reads a database once for each mutation of its files, in child processes: one that dies or hangs is a finding.
//
// One child makes many opens, one after the other, since most of the time would go into forks otherwise. No case influences the
// next: pools are mapped privately (PMDK's copy_on_write.at_open), so that what an open writes there is gone when it closes;
// the mutation is taken back; small files are compared with what they were after each open, all bytes of all files and an open
// without any mutation now and then; and a child in which something bad happened makes no further open.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/mutation/mutation.h"

namespace braiddb::test {

class MutationRunner {
 public:
  // Judges the database in the directory that it gets; it may die or hang.
  using Judging = std::function<Result(const std::string& path)>;
  using Drawing = std::function<Mutation(uint64_t number)>;
  // Called in this process with each mutation's result, in order.
  using Reporting = std::function<void(uint64_t number, const Result& result)>;

  // Lays `files` out in the directory `work`.
  MutationRunner(std::string work, const std::map<std::string, std::string>& files, Judging judge);
  ~MutationRunner();
  MutationRunner(const MutationRunner&) = delete;
  MutationRunner& operator=(const MutationRunner&) = delete;

  // Opens with the mutations first … end-1.
  void Run(uint64_t first, uint64_t end, const Drawing& draw, const Reporting& report);
  // Opens with one mutation, in a process of its own that may take its time.
  Result RunAlone(const Mutation& mutation);
  // Puts the mutation there and leaves it, to look at it.
  void Apply(const Mutation& mutation);
  void TakeBack(const Mutation& mutation);
  uint64_t controls() const { return shared_->controls; }

 private:
  struct Shared {
    std::atomic<uint64_t> next;
    std::atomic<uint64_t> controls;  // opens without a mutation
    Result results[1024];            // of those from the first one of a child on
  };
  // As mapped from the file that an open maps.
  struct Part {
    char* memory;
    const std::string* content;
  };

  static constexpr uint64_t kPerChild = 1000;
  static constexpr uint64_t kPerControl = 250;

  void RunChild(uint64_t first, uint64_t end, const Drawing& draw);
  // Whether the child ended by itself, and well, each step in time.
  enum class End : uint8_t { kDone, kDied, kKilled };
  End Wait(int child, int seconds);
  void Control();
  // Small files are as they were, and no file is there that was not.
  void RestoreSmallFiles();
  bool PartsAreAsTheyWere() const;
  std::string PathOf(const std::string& file) const { return work_ + "/" + file; }
  std::string AsideOf(const std::string& file) const { return work_ + "-aside/" + file; }

  const std::string work_;
  const std::map<std::string, std::string>& files_;
  const Judging judge_;
  std::map<std::string, Part> parts_;
  Shared* shared_;
};

}  // namespace braiddb::test

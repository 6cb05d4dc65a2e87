// BackupEngine: each backup is one sorted file <id>.backup that contains its own metadata.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <locale>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include "backup/copied_families.h"
#include "backup/copy.h"
#include "backup/sorted_file.h"
#include "braiddb/options_file.h"
#include "db/copied_database.h"
#include "db/hidden_family.h"
#include "db/no_memory.h"
#include "pmem/database_file.h"
#include "util/comparator_name.h"
#include "util/file.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

constexpr std::string_view kSuffix = ".backup";
constexpr std::string_view kTemporary = ".tmp";

// The text before the options, the families, and the user's metadata. Its lines: "timestamp <n>", "sequence <n>", "options
// <bytes>", "families <bytes>" if other families than the default exist, and an empty line.
std::string MetadataOf(const BackupInfo& info, const CopiedFamilies& families) {
  const std::string described = FamiliesToText(families);
  return "timestamp " + std::to_string(info.timestamp) + "\nsequence " + std::to_string(info.sequence) + "\noptions " +
         std::to_string(info.options.size()) +
         (described.empty() ? std::string() : "\nfamilies " + std::to_string(described.size())) + "\n\n" + info.options +
         described + info.metadata;
}

// The families that users see.
std::vector<std::string> NamesOf(const CopiedFamilies& families) {
  std::vector<std::string> names;
  for (const CopiedFamily& family : families) {
    if (!IsHiddenFamily(family.name)) names.push_back(family.name);
  }
  return names;
}

bool ReadMetadata(const std::string& text, BackupInfo* info, CopiedFamilies* families) {
  const size_t end = text.find("\n\n");
  if (end == std::string::npos) return false;
  std::istringstream lines(text.substr(0, end));
  lines.imbue(std::locale::classic());
  std::string timestamp, sequence, options;
  size_t options_bytes = 0;
  lines >> timestamp >> info->timestamp >> sequence >> info->sequence >> options >> options_bytes;
  if (lines.fail() || timestamp != "timestamp" || sequence != "sequence" || options != "options") return false;
  std::string word;
  size_t families_bytes = 0;
  if (lines >> word && (word != "families" || !(lines >> families_bytes))) return false;
  const size_t begin = end + 2;
  if (options_bytes > text.size() - begin || families_bytes > text.size() - begin - options_bytes) return false;
  info->options = text.substr(begin, options_bytes);
  info->metadata = text.substr(begin + options_bytes + families_bytes);
  if (!FamiliesFromText(text.substr(begin + options_bytes, families_bytes), families)) return false;
  info->families = NamesOf(*families);
  return true;
}

std::string NameOf(uint32_t id) { return std::to_string(id) + std::string(kSuffix); }

// The id of a backup file's name, or 0 if the name is not a backup's. Each id has exactly one name: "07.backup" is not the name
// of backup 7.
uint32_t IdOf(std::string_view name) {
  uint32_t id = 0;
  if (std::from_chars(name.data(), name.data() + name.size(), id).ec != std::errc()) return 0;
  return name == NameOf(id) ? id : 0;
}

class BackupEngineImpl final : public BackupEngine {
 public:
  BackupEngineImpl(std::string directory, std::unique_ptr<FileLock> lock)
      : directory_(std::move(directory)), lock_(std::move(lock)) {}

  Status Load() {
    std::vector<std::string> names;
    if (Status status = ListDir(directory_, &names); !status.ok()) return status;
    for (const std::string& name : names) {
      const bool is_cut_short =
          name.ends_with(kTemporary) && IdOf(std::string_view(name).substr(0, name.size() - kTemporary.size())) != 0;
      if (is_cut_short) {
        if (Status status = RemoveFile(directory_ + "/" + name); !status.ok()) return status;
      }
      const uint32_t id = IdOf(name);
      if (id == 0) continue;
      BackupInfo info;
      CopiedFamilies families;
      Status status = Describe(id, &info, &families);
      if (status.IsMemoryLimit()) return status;
      if (status.ok()) {
        backups_[id] = info;
        last_id_ = std::max(last_id_, id);
      } else {
        damaged_[id] = status;
        if (id != UINT32_MAX) last_id_ = std::max(last_id_, id);  // else a stray file of this name would end all backups
      }
    }
    return Status::OK();
  }

  Status CreateBackup(DB* of, const std::string& metadata, uint32_t* id) override try {
    const std::lock_guard work_lock(work_mutex_);
    DBImpl* const db = CopiedDatabase(of);
    if (db == nullptr) return NoCopyOfForeignDatabase();
    BackupInfo info;
    if (Status status = ChooseId(&info.id); !status.ok()) return status;
    info.timestamp =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    info.metadata = metadata;
    info.options = OptionsTextOf(db);
    std::unique_ptr<CopiedState> state;
    Status status = CopiedState::Take(db, &state);
    if (!status.ok()) return status;
    info.sequence = state->sequence();
    BRAIDDB_SYNC_POINT("BackupEngine::CreateBackup:Taken");
    status = Write(*state, &info);
    if (!status.ok()) return status;
    const std::lock_guard lock(list_mutex_);
    backups_[info.id] = info;
    last_id_ = info.id;
    if (id != nullptr) *id = info.id;
    return status;
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }

  std::vector<BackupInfo> GetBackupInfo() const override {
    const std::lock_guard lock(list_mutex_);
    std::vector<BackupInfo> all;
    for (const auto& [id, info] : backups_) all.push_back(info);
    return all;
  }

  std::vector<uint32_t> GetDamagedBackups() const override {
    const std::lock_guard lock(list_mutex_);
    std::vector<uint32_t> ids;
    for (const auto& [id, why] : damaged_) ids.push_back(id);
    return ids;
  }

  Status VerifyBackup(uint32_t id) const override try {
    const std::lock_guard lock(work_mutex_);
    return ForEachBlock(id, nullptr, [](const WriteBatch&) { return Status::OK(); });
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }

  Status RestoreBackup(uint32_t id, const Options& options, const std::string& path, const CopyOptions& copy) const override try {
    const std::lock_guard lock(work_mutex_);
    if (!options.region_paths.empty()) {
      return Status::NotSupported("a restore into region_paths; restore into one directory, then move the regions");
    }
    if (!backups_.contains(id)) return NoSuchBackup(id);
    if (LiesIn(directory_, path)) {
      return Status::InvalidArgument("the backups lie in " + path + ", which a restore replaces; choose another directory");
    }
    BackupInfo info;
    CopiedFamilies families;
    if (Status status = Describe(id, &info, &families); !status.ok()) return status;
    return MakeDatabase({options, options, path, true, copy}, [&](DB* db) {
      FamilyWriter writer;
      Status status = writer.Create(db, families, copy.comparators);
      if (!status.ok()) return status;
      return ForEachBlock(id, options.comparator, [&](const WriteBatch& block) { return writer.Write(block); });
    });
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }

  Status DeleteBackup(uint32_t id) override {
    const std::lock_guard lock(work_mutex_);
    return Remove(id);
  }

  Status PurgeOldBackups(uint32_t keep) override {
    const std::lock_guard lock(work_mutex_);
    Status status;
    while (status.ok() && backups_.size() > keep) status = Remove(backups_.begin()->first);
    return status;
  }

 private:
  std::string PathOf(uint32_t id) const { return directory_ + "/" + NameOf(id); }

  // Chooses an id larger than the ids of all backups. Skips ids whose file exists, for example a foreign file.
  Status ChooseId(uint32_t* id) const {
    *id = last_id_;
    do {
      if (*id == UINT32_MAX) {
        return Status::NoSpace(directory_ + ": no larger number is left for a backup; move " + NameOf(last_id_) +
                               " and those before it to another directory, and open this one again");
      }
      ++*id;
    } while (damaged_.contains(*id) || FileExists(PathOf(*id)));
    return Status::OK();
  }

  Status NoSuchBackup(uint32_t id) const {
    if (const auto damaged = damaged_.find(id); damaged != damaged_.end()) return damaged->second;
    return Status::NotFound(directory_ + ": no backup " + std::to_string(id) + "; GetBackupInfo lists those that are there");
  }

  Status Describe(uint32_t id, BackupInfo* info, CopiedFamilies* families) const {
    std::unique_ptr<SortedFileReader> reader;
    if (Status status = SortedFileReader::Open(PathOf(id), &reader); !status.ok()) return status;
    info->id = id;
    info->size = reader->file_bytes();
    info->keys = reader->entries();
    if (ReadMetadata(reader->metadata(), info, families)) return Status::OK();
    return Status::Corruption(PathOf(id) + ": does not say what it is a backup of");
  }

  Status Write(const CopiedState& state, BackupInfo* info) {
    std::unique_ptr<SortedFileWriterImpl> writer;
    const Comparator* const comparator = state.families().front()->GetOptions().comparator;
    Status status = SortedFileWriterImpl::Create(PathOf(info->id), comparator, &writer);
    for (const auto& family : state.families()) {
      if (!status.ok()) return status;
      writer->BeginFamily(*family);
      const auto iterator = state.NewIterator(family.get());
      for (iterator->SeekToFirst(); iterator->Valid() && status.ok(); iterator->Next()) {
        status = writer->Put(iterator->key(), iterator->value());
        ++info->keys;
      }
      if (status.ok()) status = iterator->status();
    }
    const CopiedFamilies families = DescribeFamilies(state);
    info->families = NamesOf(families);
    if (status.ok()) status = writer->FinishWith(MetadataOf(*info, families));
    info->size = writer->FileSize();
    return status;
  }

  template <class Body>
  Status ForEachBlock(uint32_t id, const Comparator* comparator, const Body& body) const {
    if (!backups_.contains(id)) return NoSuchBackup(id);
    std::unique_ptr<SortedFileReader> reader;
    Status status = SortedFileReader::Open(PathOf(id), &reader);
    if (!status.ok()) return status;
    if (comparator != nullptr && reader->comparator_name() != StoredName(*comparator)) {
      return Status::InvalidArgument("the backup is of a database with the comparator " + reader->comparator_name() + ", not " +
                                     comparator->Name());
    }
    WriteBatch block;
    do {
      status = reader->ReadBlock(&block);
      if (status.ok() && block.Count() > 0) status = body(block);
    } while (status.ok() && block.Count() > 0);
    return status;
  }

  Status Remove(uint32_t id) {
    if (!backups_.contains(id) && !damaged_.contains(id)) return NoSuchBackup(id);
    if (Status status = RemoveFile(PathOf(id)); !status.ok()) return status;
    {
      const std::lock_guard lock(list_mutex_);
      backups_.erase(id);
      damaged_.erase(id);
    }
    return SyncDir(directory_);
  }

  const std::string directory_;
  const std::unique_ptr<FileLock> lock_;
  mutable std::mutex work_mutex_;  // locked before list_mutex_; held while files are written, read, or removed
  mutable std::mutex list_mutex_;
  // Changed while both mutexes are held, so one of them is enough for a read.
  std::map<uint32_t, BackupInfo> backups_;
  std::map<uint32_t, Status> damaged_;  // damaged backups and the error of each
  uint32_t last_id_ = 0;                // largest id of a backup since the open, deleted backups included; guarded by work_mutex_
};

}  // namespace

Status BackupEngine::Open(const std::string& directory, std::unique_ptr<BackupEngine>* engine) try {
  engine->reset();
  std::unique_ptr<FileLock> lock;
  Status status = CreateDir(directory);
  // A lock file of its own name, because some users keep backups in the directory of the database.
  if (status.ok()) status = FileLock::Acquire(directory + "/BACKUP_LOCK", &lock);
  if (!status.ok()) return status;
  auto result = std::make_unique<BackupEngineImpl>(AbsolutePath(directory), std::move(lock));
  status = result->Load();
  if (status.ok()) *engine = std::move(result);
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

}  // namespace braiddb

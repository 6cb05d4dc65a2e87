// braiddb export: writes keys and values to a file or to the standard output.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <filesystem>

#include "tools/command.h"
#include "tools/interrupt.h"
#include "tools/progress.h"
#include "tools/record.h"
#include "tools/session.h"
#include "util/file.h"

namespace braiddb::tools {
namespace {

namespace po = boost::program_options;
using Takes = CommandLine::Takes;

constexpr size_t kWrittenAtOnce = 1 << 20;
constexpr int kMaxTemporaryNames = 1000;

// A file that is there, complete and durable, or not at all; or the standard output.
class Output {
 public:
  explicit Output(std::string path) : path_(std::move(path)) {}
  ~Output() {
    if (fd_ < 0 || path_.empty()) return;
    close(fd_);
    (void)unlink(temporary_.c_str());
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  Status Open() {
    if (path_.empty()) {
      fd_ = STDOUT_FILENO;
      return Status::OK();
    }
    if (FileExists(path_)) return Status::InvalidArgument(path_ + ": is there already; choose another file");
    // A file of that name may belong to another export or to another program.
    for (int number = 0; fd_ < 0 && number < kMaxTemporaryNames; ++number) {
      temporary_ = path_ + "." + std::to_string(number) + ".tmp";
      fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
      if (fd_ < 0 && errno != EEXIST) break;
    }
    return fd_ < 0 ? StatusFromErrno(errno, temporary_) : Status::OK();
  }
  Status Write(std::string* text) {
    for (size_t at = 0; at < text->size();) {
      const ssize_t written = write(fd_, text->data() + at, text->size() - at);
      if (written < 0 && errno == EINTR && !IsInterrupted()) continue;
      if (written < 0) return IsInterrupted() ? Status::Aborted("interrupted") : StatusFromErrno(errno, name());
      at += static_cast<size_t>(written);
    }
    text->clear();
    return Status::OK();
  }
  Status Finish() {
    if (path_.empty()) return Status::OK();
    if (fsync(fd_) != 0) return StatusFromErrno(errno, temporary_);
    if (!RenameToNew()) return StatusFromErrno(errno, path_);
    close(fd_);
    fd_ = -1;
    const std::string directory = std::filesystem::path(path_).parent_path();
    return SyncDir(directory.empty() ? "." : directory);
  }

 private:
  // Replaces no file. Sets errno and returns false on failure.
  bool RenameToNew() const {
    if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
    // The file system has no such rename.
    if (FileExists(path_)) return errno = EEXIST, false;
    return rename(temporary_.c_str(), path_.c_str()) == 0;
  }
  std::string name() const { return path_.empty() ? "standard output" : temporary_; }

  const std::string path_;  // empty: the standard output
  std::string temporary_;
  int fd_ = -1;
};

struct ExportArguments {
  std::string file;
  std::string format;
  std::string family;
  OpenSettings settings;
  bool is_hex = false;
  bool is_escape = false;
};

// The families to write: the one that --family names, or all.
Status ChooseFamilies(const ExportArguments& arguments, const Session& session, RecordFormat format,
                      std::vector<ColumnFamilyHandle*>* families) {
  if (!arguments.family.empty()) {
    families->push_back(session.Find(arguments.family));
    if (families->front() == nullptr) return Status::NotFound("there is no column family '" + arguments.family + "'");
  } else {
    for (const auto& family : session.families) families->push_back(family.get());
  }
  const bool is_dump = format == RecordFormat::kMdbDump || format == RecordFormat::kDbDump;
  for (ColumnFamilyHandle* family : *families) {
    if (is_dump && family->GetName().find('\n') != std::string::npos)
      return Status::NotSupported("this format has no place for a newline in the name of a column family; use jsonl");
  }
  if (families->size() > 1 && !CarriesFamilies(format))
    return Status::InvalidArgument("this format keeps one column family, and there are " + std::to_string(families->size()) +
                                   "; choose one by --family, or the format jsonl, mdb or db");
  return Status::OK();
}

// `read`: the snapshot of the export.
Status WriteFamily(DB* db, ColumnFamilyHandle* family, const ReadOptions& read, RecordWriter* writer, Output* output,
                   Progress* progress, uint64_t* done) {
  std::string text;
  uint64_t bytes = 0;
  db->GetIntProperty("braiddb.pm-bytes-live", &bytes);
  writer->BeginFamily(family->GetName(), bytes, &text);
  const auto iterator = db->NewIterator(read, family);
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    writer->Append(iterator->key(), iterator->value(), &text);
    progress->Update(++*done);
    if (text.size() < kWrittenAtOnce) continue;
    if (Status status = output->Write(&text); !status.ok()) return status;
    if (IsInterrupted()) return Status::Aborted("interrupted");
  }
  if (Status status = iterator->status(); !status.ok()) return status;
  writer->EndFamily(&text);
  return output->Write(&text);
}

uint64_t EstimateKeys(DB* db, const std::vector<ColumnFamilyHandle*>& families) {
  uint64_t sum = 0;
  for (ColumnFamilyHandle* family : families) {
    uint64_t keys = 0;
    if (db->GetIntProperty(family, "braiddb.estimate-num-keys", &keys)) sum += keys;
  }
  return sum;
}

Status WriteAll(const ExportArguments& arguments, Session* session, RecordFormat format, uint64_t* done) {
  std::vector<ColumnFamilyHandle*> families;
  Output output(arguments.file);
  Status status = ChooseFamilies(arguments, *session, format, &families);
  if (status.ok()) status = output.Open();
  if (!status.ok()) return status;
  const ByteForm bytes = arguments.is_hex ? ByteForm::kHex : arguments.is_escape ? ByteForm::kEscape : ByteForm::kRaw;
  const auto writer = MakeRecordWriter(format, bytes, families.size());
  Progress progress("exporting", Progress::Unit::kEntries, EstimateKeys(session->db.get(), families));
  ReadOptions read;
  read.total_order_seek = true;
  read.verify_checksums = !session->is_live();  // a live reader cannot verify checksums
  read.snapshot = session->db->GetSnapshot();
  if (read.snapshot == nullptr)
    return Status::IOError("there is no snapshot: the program that has the database open does not answer");
  for (ColumnFamilyHandle* family : families) {
    if (status.ok()) status = WriteFamily(session->db.get(), family, read, writer.get(), &output, &progress, done);
  }
  session->db->ReleaseSnapshot(read.snapshot);
  return status.ok() ? output.Finish() : status;
}

}  // namespace

int RunExport(const Arguments& given) {
  CommandLine line("braiddb export [option...] <database> [<file>]", {"database"}, Takes::kArguments, 1);
  ExportArguments arguments;
  bool as_json = false;
  line.Add()("format", po::value(&arguments.format)->value_name("NAME"),
             "csv, tsv, jsonl, mdb (for mdb_load), db (for db_load), ldb (for ldb load --hex); default: by the file's name")(
      "family", po::value(&arguments.family)->value_name("NAME"), "one column family; default: all")(
      "hex", po::bool_switch(&arguments.is_hex), "fields of CSV and TSV are hexadecimal")(
      "escape", po::bool_switch(&arguments.is_escape), "fields of CSV and TSV have escapes %XX")(
      "secondary", po::value(&arguments.settings.secondary)->value_name("DIRECTORY"),
      "read beside a program that has the database open; DIRECTORY keeps a copy of the database")(
      "json", po::bool_switch(&as_json), "print the number of records as JSON; needs a file");
  int exit_code = kSound;
  if (!line.Parse(given, &exit_code)) return exit_code;
  if (line.values().size() > 1 && line.Positional(1) != "-") arguments.file = line.Positional(1);
  RecordFormat format;
  if (!arguments.format.empty() && !ParseRecordFormat(arguments.format, &format))
    return line.Refuse("--format " + arguments.format + " is none of csv, tsv, jsonl, mdb, db, ldb");
  if (arguments.format.empty() && !GuessRecordFormat(arguments.file, {}, &format))
    return line.Refuse("the format is not known; choose it by --format");
  if (arguments.is_hex && arguments.is_escape) return line.Refuse("--hex and --escape exclude each other");
  const InterruptGuard guard;
  Session session;
  uint64_t done = 0;
  Status status = session.Open(line.Positional(0), arguments.settings);
  if (status.ok()) status = WriteAll(arguments, &session, format, &done);
  if (!status.ok()) return CannotLook(status);
  if (as_json && !arguments.file.empty()) {
    Facts facts;
    facts.Add("file", arguments.file);
    facts.Add("records", done);
    facts.Print({OutputForm::kJson, ByteForm::kRaw});
  }
  return kSound;
}

}  // namespace braiddb::tools

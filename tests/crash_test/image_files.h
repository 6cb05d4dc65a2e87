// ImageFiles: lays crash images out as databases, one after the other, in one directory.
//
// The files hold what is guaranteed at the crash point that was reached last; an image is written over it and taken back. While
// an
// image is looked at its pools are mapped privately (PMDK's copy_on_write.at_open), so that recovery does not change the files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/crash_test/crash_image.h"
#include "tests/crash_test/crash_point.h"

namespace braiddb::test {

class ImageFiles {
 public:
  // The record must outlive this object.
  ImageFiles(std::string directory, const CrashRecord& record);
  ~ImageFiles();
  ImageFiles(const ImageFiles&) = delete;
  ImageFiles& operator=(const ImageFiles&) = delete;

  const std::string& directory() const { return directory_; }
  // Points must be gone to in ascending order.
  void GoTo(const CrashPoint& point);
  // What is guaranteed of a point's dirty lines. REQUIRES: it was gone to, and no image is applied.
  std::vector<MediaLine> GuaranteedOf(const CrashPoint& point) const;
  void Apply(const CrashImage& image);
  // Takes the image back, and what a database that grew left in the directory.
  void TakeBack();

 private:
  struct Part {
    std::string path;
    uint64_t begin;
    uint64_t bytes;
    uint8_t* memory;
  };

  // A second name of each part: an open removes one that was being added, and the next image needs it again.
  std::string PartLink(const std::string& path) const { return directory_ + "-parts/" + path; }
  uint8_t* At(uint32_t region, uint64_t offset) const;
  void LayOut(const CrashFiles& files);
  void AddPart(uint32_t region, const CrashFiles::Part& part);
  void RestoreFiles(const CrashFiles& files);

  const std::string directory_;
  const CrashRecord& record_;
  uint64_t media_lines_ = 0;
  std::shared_ptr<const CrashFiles> files_;
  std::vector<std::vector<Part>> parts_;
  uint64_t file_changes_ = 0;
  CrashImage taken_;  // what the applied image replaced, in its order
};

}  // namespace braiddb::test

// OpenObjects: objects of a database that programs for RocksDB may release late, or never: transactions, iterators, column family
// handles, pinned values. The close releases their locks and pins. After the close such an object may only be destroyed.
#pragma once

#include <mutex>

namespace braiddb::capi {

class OpenObjects;

// Is in the list of a database from OpenObjects::Add until it is destroyed or the database is closed.
class OpenObject {
 public:
  OpenObject() = default;
  OpenObject(const OpenObject&) = delete;
  OpenObject& operator=(const OpenObject&) = delete;
  virtual ~OpenObject();

 private:
  friend class OpenObjects;
  // Releases all resources of the database.
  virtual void EndBeforeClose() noexcept = 0;

  OpenObjects* list_ = nullptr;
  OpenObject* older_ = nullptr;
  OpenObject* newer_ = nullptr;
};

// Thread safety: all methods. EndAll must be the last call.
class OpenObjects {
 public:
  OpenObjects() = default;
  OpenObjects(const OpenObjects&) = delete;
  OpenObjects& operator=(const OpenObjects&) = delete;

  // Adds an object. If it is in the list of another database, moves it to this list. No effect if it is in this list.
  void Add(OpenObject* object) noexcept;
  // Releases all objects, newest first. So an iterator ends before the transaction that it reads through.
  void EndAll() noexcept;

 private:
  friend class OpenObject;
  void Remove(OpenObject* object) noexcept;

  std::mutex mutex_;
  OpenObject* newest_ = nullptr;
};

inline OpenObject::~OpenObject() {
  if (list_ != nullptr) list_->Remove(this);
}

inline void OpenObjects::Add(OpenObject* object) noexcept {
  if (object->list_ == this) return;
  if (object->list_ != nullptr) object->list_->Remove(object);
  const std::lock_guard lock(mutex_);
  object->list_ = this;
  object->newer_ = nullptr;
  object->older_ = newest_;
  if (newest_ != nullptr) newest_->newer_ = object;
  newest_ = object;
}

inline void OpenObjects::Remove(OpenObject* object) noexcept {
  const std::lock_guard lock(mutex_);
  (object == newest_ ? newest_ : object->newer_->older_) = object->older_;
  if (object->older_ != nullptr) object->older_->newer_ = object->newer_;
}

inline void OpenObjects::EndAll() noexcept {
  while (newest_ != nullptr) {
    OpenObject* const object = newest_;
    newest_ = object->older_;
    if (newest_ != nullptr) newest_->newer_ = nullptr;
    object->list_ = nullptr;
    object->EndBeforeClose();
  }
}

}  // namespace braiddb::capi

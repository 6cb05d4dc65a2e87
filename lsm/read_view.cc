#include "lsm/read_view.h"

#include <algorithm>
#include <utility>

namespace braiddb {

void FamilyView::AddTable(std::shared_ptr<PmTable> table, std::shared_ptr<const TableOrder> order) {
  l0.insert(l0.begin(), std::move(table));
  orders.insert(orders.begin(), {std::move(order), 1});
}

void FamilyView::AddOldest(std::shared_ptr<PmTable> table, std::shared_ptr<const TableOrder> order) {
  l0.push_back(std::move(table));
  orders.push_back({std::move(order), 1});
}

void FamilyView::RemoveOldest(size_t tables) {
  l0.resize(l0.size() - tables);
  while (tables > 0) {
    const size_t last = orders.back().tables;
    orders.pop_back();
    if (last > tables) orders.resize(orders.size() + last - tables, {nullptr, 1});  // its remaining tables have no array
    tables -= std::min(tables, last);
  }
}

void FamilyView::SetOrder(const PmTable& table, std::shared_ptr<const TableOrder> order) {
  size_t first = 0;
  for (Ordered& ordered : orders) {
    if (l0[first].get() == &table && ordered.order == nullptr) ordered.order = std::move(order);
    first += ordered.tables;
  }
}

size_t FamilyView::FindOrders(const std::vector<std::shared_ptr<const TableOrder>>& of) const {
  const auto is_same = [](const Ordered& ordered, const auto& order) { return ordered.order == order; };
  return static_cast<size_t>(std::search(orders.begin(), orders.end(), of.begin(), of.end(), is_same) - orders.begin());
}

// Walks from the oldest to newer arrays. An array that also covers newer tables than asked for cannot be used.
std::vector<std::shared_ptr<const TableOrder>> FamilyView::OldestOrders(size_t tables) const {
  std::vector<std::shared_ptr<const TableOrder>> oldest;
  for (auto ordered = orders.rbegin(); tables > 0; ++ordered) {
    if (ordered->order == nullptr || ordered->tables > tables) return {};
    tables -= ordered->tables;
    oldest.insert(oldest.begin(), ordered->order);
  }
  return oldest;
}

size_t FamilyView::AlignToOrders(size_t tables) const {
  size_t aligned = 0;
  for (auto ordered = orders.rbegin(); ordered != orders.rend() && aligned + ordered->tables <= tables; ++ordered)
    aligned += ordered->tables;
  return aligned == 0 ? tables : aligned;
}

size_t FamilyView::TablesBehind(const TableOrder& order) const {
  size_t tables = 0;
  for (auto ordered = orders.rbegin(); ordered->order.get() != &order; ++ordered) tables += ordered->tables;
  return tables;
}

// Replaces the first array of the range and erases the others, so the sum of `tables` stays equal to the number of tables in l0.
void FamilyView::MergeOrders(const std::vector<std::shared_ptr<const TableOrder>>& of,
                             std::shared_ptr<const TableOrder> together) {
  const auto first = orders.begin() + static_cast<ptrdiff_t>(FindOrders(of));
  size_t tables = 0;
  for (size_t i = 0; i < of.size(); ++i) tables += first[static_cast<ptrdiff_t>(i)].tables;
  *first = {std::move(together), tables};
  orders.erase(first + 1, first + static_cast<ptrdiff_t>(of.size()));
}

}  // namespace braiddb

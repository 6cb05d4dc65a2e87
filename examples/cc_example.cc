// A first program in C++: a small shop. It opens a database with column families and transactions, writes and reads, sells
// something, reads the state of before the sale, closes, and opens again to see that all is there.
// usage: cc_example DIRECTORY      (the directory becomes a database; it is removed at the end)
#include <braiddb/db.h>
#include <braiddb/transaction.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

// Calls that can fail return a Status. This program gives up; one of your own can ask: IsNotFound(), IsBusy(), IsNoSpace() …
static void Check(const braiddb::Status& status, const char* what) {
  if (status.ok()) return;
  std::cerr << what << ": " << status.ToString() << "\n";
  std::exit(1);
}

// What an open gives: the database, and a handle for each column family, which go before it does.
struct Shop {
  std::unique_ptr<braiddb::TransactionDB> db;
  std::vector<std::unique_ptr<braiddb::ColumnFamilyHandle>> families;

  braiddb::ColumnFamilyHandle* stock() const { return families[1].get(); }
};

// TransactionDB is a DB with transactions. Who wants none takes braiddb::DB and DB::Open.
static Shop Open(const std::string& path) {
  braiddb::Options options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  // On machines with persistent memory: a region on each mount, e.g.
  //   options.regions = 2; options.region_paths = {"/mnt/pmem0/shop", "/mnt/pmem1/shop"};
  options.dram_budget = 128ull << 20;  // bytes of DRAM for everything: memtables, indexes, caches

  const std::vector<braiddb::ColumnFamilyDescriptor> families{{braiddb::kDefaultColumnFamilyName, {}}, {"stock", {}}};
  Shop shop;
  Check(braiddb::TransactionDB::Open(options, braiddb::TransactionDBOptions(), path, families, &shop.families, &shop.db), "open");
  return shop;
}

// Iterators, snapshots and handles go before the database is closed. The destructor closes, too, but tells nobody of errors.
static void Close(Shop* shop) {
  shop->families.clear();
  Check(shop->db->Close(), "close");
  shop->db.reset();
}

// All keys of the default family, in order.
static int PrintGoods(braiddb::DB* db) {
  int count = 0;
  const std::unique_ptr<braiddb::Iterator> iterator = db->NewIterator(braiddb::ReadOptions());
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    std::cout << iterator->key() << ": " << iterator->value() << "\n";
    ++count;
  }
  Check(iterator->status(), "iterator");  // not valid may be the end, or an error
  return count;
}

// Takes one from the stock, if there is one, and notes the buyer: both or nothing, and nobody comes between.
static bool Sell(const Shop& shop, const std::string& good, const std::string& buyer) {
  const auto transaction = shop.db->BeginTransaction(braiddb::WriteOptions());
  std::string left;
  Check(transaction->GetForUpdate(braiddb::ReadOptions(), shop.stock(), good, &left), "read for update");
  if (left == "0") return false;  // its destructor rolls it back
  Check(transaction->Put(shop.stock(), good, std::to_string(std::stoi(left) - 1)), "put");
  Check(transaction->Put("sold " + good, buyer), "put");
  Check(transaction->Commit(), "commit");
  return true;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: cc_example DIRECTORY\n";
    return 2;
  }
  const std::string path = argv[1];
  const braiddb::WriteOptions write;
  const braiddb::ReadOptions read;
  Shop shop = Open(path);
  braiddb::DB* const db = shop.db.get();

  // A put is durable when it returns.
  Check(db->Put(write, "rope", "three strands, ten metres"), "put");

  // A batch is there whole, or not at all, in all families.
  braiddb::WriteBatch batch;
  batch.Put("ribbon", "red");
  batch.Put(shop.stock(), "rope", "1");
  batch.Put(shop.stock(), "ribbon", "20");
  batch.Delete("thread");  // no error if it is not there
  Check(db->Write(write, batch), "write");

  // A key that is not there is a Status of its own.
  std::string value;
  Check(db->Get(read, "rope", &value), "get");
  std::cout << "rope is " << value << "\n";
  if (!db->Get(read, "thread", &value).IsNotFound()) return 1;

  // A snapshot sees what was there when it was made, whatever comes.
  const braiddb::Snapshot* const before = db->GetSnapshot();
  if (!Sell(shop, "rope", "Ada")) return 1;
  if (Sell(shop, "rope", "Grace")) return 1;  // it was the last one

  braiddb::ReadOptions earlier;
  earlier.snapshot = before;
  std::string left;
  Check(db->Get(earlier, shop.stock(), "rope", &value), "get of before");
  Check(db->Get(read, shop.stock(), "rope", &left), "get");
  std::cout << "ropes: " << value << " before, " << left << " now\n";
  db->ReleaseSnapshot(before);
  if (value != "1" || left != "0") return 1;

  // What was written is there when it is opened again; also when the process was killed, or the power went.
  Close(&shop);
  shop = Open(path);
  const int count = PrintGoods(shop.db.get());
  Close(&shop);
  Check(braiddb::DB::Destroy(braiddb::Options(), path), "destroy");
  return count == 3 ? 0 : 1;
}

"""Tests of the package braiddb, by what they show. Each has a database of its own on tmpfs."""

import gc
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Mapping, MutableMapping

import pytest

import braiddb

SHM = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
SMALL = braiddb.Options(max_region_size=1 << 28)


@pytest.fixture
def path():
    with tempfile.TemporaryDirectory(dir=SHM) as directory:
        yield os.path.join(directory, "db")


@pytest.fixture
def db(path):
    with braiddb.open(path, create=True, options=SMALL) as made:
        yield made


def test_is_a_mapping(db):
    db[b"k"] = b"v"
    assert db[b"k"] == b"v" and b"k" in db and b"x" not in db
    assert db.get(b"x") is None and db.get(b"x", 7) == 7
    with pytest.raises(KeyError):
        db[b"x"]
    with pytest.raises(KeyError):
        del db[b"x"]
    del db[b"k"]
    assert list(db) == []


def test_has_the_methods_of_a_dict(db):
    assert isinstance(db, MutableMapping) and isinstance(db.snapshot(), Mapping) and not isinstance(db.snapshot(), MutableMapping)
    assert not db and len(db) == 0
    db.update({b"a": b"1", b"b": b"2"})
    db.update([(b"c", b"3")])
    assert db and len(db) == 3 and list(reversed(db)) == [b"c", b"b", b"a"]
    assert dict(db) == {b"a": b"1", b"b": b"2", b"c": b"3"}
    assert db.pop(b"a") == b"1" and db.pop(b"a", None) is None
    with pytest.raises(KeyError):
        db.pop(b"a")
    assert db.setdefault(b"b", b"9") == b"2" and db.setdefault(b"d", b"4") == b"4"
    assert db.popitem() == (b"b", b"2")
    db.clear()
    db.clear()
    assert dict(db) == {} and not db


def test_takes_any_buffer_and_no_text(db):
    db[bytearray(b"a")] = memoryview(b"xyz")[1:]
    assert db[memoryview(b"a")] == b"yz"
    with pytest.raises(TypeError, match="bytes"):
        db["a"] = b""
    with pytest.raises(TypeError):
        db[1]


def test_empty_and_large(db):
    db[b""] = b""
    assert db[b""] == b""
    value = os.urandom(3 << 20)
    db[b"\0" * 1000] = value
    assert db[b"\0" * 1000] == value
    with pytest.raises(braiddb.InvalidArgumentError):
        db[b"k" * 100_000] = b""


@pytest.mark.parametrize("where", ["memtable", "levels"])
def test_ranges_agree_with_a_model(db, where):
    generator = random.Random(1)
    model = {}
    for _ in range(2000):
        key = bytes(generator.choices(b"ab\0\xff", k=generator.randrange(5)))
        if generator.random() < 0.2:
            db.delete(key)
            model.pop(key, None)
        else:
            db[key] = model[key] = str(generator.random()).encode()
    if where == "levels":
        db.compact()
    for _ in range(300):
        start, stop, prefix = (bytes(generator.choices(b"ab\0\xff", k=generator.randrange(4))) if generator.random() < 0.5 else None
                               for _ in range(3))
        limit = generator.choice([None, 0, 1, 5])
        reverse = generator.random() < 0.5
        wanted = [(key, value) for key, value in sorted(model.items())
                  if (start is None or key >= start) and (stop is None or key < stop) and (prefix is None or key.startswith(prefix))]
        wanted = (wanted[::-1] if reverse else wanted)[:limit]
        arguments = dict(prefix=prefix, start=start, stop=stop, reverse=reverse, limit=limit)
        assert list(db.items(**arguments)) == wanted
        assert list(db.keys(**arguments)) == [key for key, _ in wanted]
        assert list(db.values(**arguments)) == [value for _, value in wanted]


def test_negative_limit_is_an_error(db):
    with pytest.raises(ValueError):
        db.items(limit=-1)


def test_an_iterator_that_ended_stays_at_its_end(db):
    db[b"k"] = b"v"
    iterator = db.items()
    assert next(iterator) == (b"k", b"v")
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(iterator)


def test_multi_get(db):
    for i in range(100):
        db[b"%d" % i] = b"v%d" % i
    assert db.multi_get([b"1", b"x", b"99"]) == [b"v1", None, b"v99"]
    assert db.multi_get((b"%d" % i for i in range(100)), b"?") == [b"v%d" % i for i in range(100)]
    assert db.multi_get([]) == []


def test_batch_is_all_or_nothing(db):
    with db.batch() as batch:
        batch.put(b"a", b"1")
        batch.put(b"b", b"2")
        batch.delete(b"a")
        assert len(batch) == 3
    assert list(db.items()) == [(b"b", b"2")]
    with pytest.raises(RuntimeError):
        with db.batch() as batch:
            batch.put(b"c", b"3")
            raise RuntimeError
    assert b"c" not in db


def test_delete_range(db):
    for key in (b"a", b"b", b"c"):
        db[key] = b""
    db.delete_range(b"a", b"c")
    assert list(db) == [b"c"]


def test_snapshot(db):
    db[b"k"] = b"1"
    with db.snapshot() as snapshot:
        db[b"k"] = b"2"
        db[b"l"] = b""
        assert snapshot[b"k"] == b"1" and list(snapshot) == [b"k"] and db[b"k"] == b"2"
        iterator = snapshot.items()
    with pytest.raises(braiddb.ClosedError):
        snapshot[b"k"]
    assert list(iterator) == [(b"k", b"1")]


def test_families(path):
    with braiddb.open(path, create=True, options=SMALL) as db:
        users = db.create_family("users")
        users[b"k"] = b"u"
        with db.batch() as batch:
            batch.put(b"k", b"d")
            batch.put(b"l", b"u", family="users")
        assert db.families == ["default", "users"] and users.name == "users"
        with db.snapshot() as snapshot:
            users[b"k"] = b"later"
            assert snapshot.family("users")[b"k"] == b"u"
    assert braiddb.list_families(path) == ["default", "users"]
    with braiddb.open(path) as db:
        assert dict(db.family("users").items()) == {b"k": b"later", b"l": b"u"}
        with pytest.raises(braiddb.NotFoundError):
            db.family("none")
        db.drop_family("users")
        with pytest.raises(braiddb.NotFoundError):
            db.family("users")
        assert list(db.create_family("users")) == []


@pytest.mark.parametrize("kind", ["pessimistic", "optimistic"])
def test_transactions(path, kind):
    with braiddb.open(path, create=True, transactions=kind, options=SMALL) as db:
        with db.transaction() as transaction:
            assert transaction.get_for_update(b"a") is None
            transaction.put(b"a", b"1")
            assert transaction.get(b"a") == b"1" and b"a" not in db
            assert list(transaction.items()) == [(b"a", b"1")]
        assert db[b"a"] == b"1"
        with pytest.raises(RuntimeError):
            with db.transaction() as transaction:
                transaction.put(b"a", b"2")
                raise RuntimeError
        assert db[b"a"] == b"1"
        one, other = db.transaction(lock_timeout=0), db.transaction(lock_timeout=0)
        one.put(b"a", b"one")
        if kind == "pessimistic":
            with pytest.raises(braiddb.TimedOutError):
                other.put(b"a", b"other")
        else:
            other.put(b"a", b"other")
        one.commit()
        if kind == "optimistic":
            with pytest.raises(braiddb.BusyError):
                other.commit()
        assert db[b"a"] == b"one"


def test_no_transactions_unless_asked_for(db):
    with pytest.raises(braiddb.NotSupportedError):
        db.transaction()


def test_merge_operators(path):
    def append(key, existing, operands):
        return (existing or b"") + b"".join(operands)

    with braiddb.open(path, create=True, merge_operator=("append", append), options=SMALL) as db:
        for i in range(10):
            db.merge(b"k", b"%d" % i)
        assert db[b"k"] == b"0123456789"
        db.compact()
        assert db[b"k"] == b"0123456789"
    with braiddb.open(path, merge_operator="uint64add") as db:
        db.merge(b"n", (5).to_bytes(8, "little"))
        db.merge(b"n", (6).to_bytes(8, "little"))
        assert int.from_bytes(db[b"n"], "little") == 11


def test_a_merge_operator_that_fails_is_corruption_of_that_key(path, capsys):
    def fail(key, existing, operands):
        raise ZeroDivisionError

    with braiddb.open(path, create=True, merge_operator=("fail", fail), options=SMALL) as db:
        db.merge(b"k", b"")
        db[b"l"] = b"fine"
        with pytest.raises(braiddb.CorruptionError):
            db[b"k"]
        assert db[b"l"] == b"fine"


def test_comparators(path):
    def by_length(a, b):
        return (len(a) > len(b)) - (len(a) < len(b)) or (a > b) - (a < b)

    with braiddb.open(path, create=True, comparator=("by length", by_length), options=SMALL) as db:
        for key in (b"bb", b"a", b"ccc", b"c"):
            db[key] = b""
        assert list(db) == [b"a", b"c", b"bb", b"ccc"]
        db.compact()
        assert list(db) == [b"a", b"c", b"bb", b"ccc"]
    with pytest.raises(braiddb.InvalidArgumentError):
        braiddb.open(path)
    with pytest.raises(braiddb.InvalidArgumentError, match="bytewise"):
        braiddb.open(path, comparator="nonsense")


def test_threads_with_a_comparator_in_python(path):
    with braiddb.open(path, create=True, comparator=("plain", lambda a, b: (a > b) - (a < b)), options=SMALL) as db:
        def work(thread):
            for i in range(200):
                with db.batch() as batch:
                    batch.put(b"%d %d" % (thread, i), b"v")
                    batch.put(b"both", b"%d" % thread)
                assert db[b"%d %d" % (thread, i)] == b"v"
                db.get(b"both")

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(list(db.keys())) == 801


def test_ttl(path):
    with braiddb.open(path, create=True, ttl=1000, options=SMALL) as db:
        db[b"k"] = b"v"
        assert db[b"k"] == b"v"


def test_views(db):
    db[b"k"] = b"value"
    pinned = db.get_view(b"k")
    assert len(pinned) == 5 and bytes(pinned) == b"value" and db.get_view(b"x") is None
    view = memoryview(pinned)
    assert view.readonly
    del pinned
    db[b"k"] = b"other"
    db.compact()
    assert bytes(view) == b"value"
    with pytest.raises(BufferError):
        db.close()
    view.release()
    pinned = db.get_view(b"k")
    db.close()
    with pytest.raises(ValueError):
        memoryview(pinned)
    with pytest.raises(ValueError):
        bytes(pinned)


def test_use_after_close(path):
    db = braiddb.open(path, create=True, transactions=True, options=SMALL)
    db[b"k"] = b"v"
    iterator, snapshot, batch, transaction = db.items(), db.snapshot(), db.batch(), db.transaction()
    transaction.put(b"t", b"")
    batch.put(b"b", b"")
    db.close()
    db.close()
    assert db.closed
    for call in (lambda: db[b"k"], lambda: db.put(b"k", b""), lambda: db.items(), lambda: next(iterator), lambda: snapshot[b"k"],
                 batch.write, transaction.commit, db.flush, db.snapshot, lambda: db.family("default"), lambda: db.path):
        with pytest.raises(braiddb.ClosedError):
            call()
    snapshot.release()
    del iterator, snapshot, batch, transaction
    gc.collect()
    with braiddb.open(path, transactions=True) as again:
        assert list(again) == [b"k"]


def test_close_beside_calls(path):
    for _ in range(5):
        db = braiddb.open(path, create=True, options=SMALL)
        errors = []

        def work(db=db, errors=errors):
            try:
                while True:
                    db[os.urandom(4)] = b"v"
                    list(db.items(limit=10))
                    db.multi_get([b"a", b"b"])
            except braiddb.ClosedError:
                pass
            except Exception as error:  # pragma: no cover
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        db.put(b"k", b"v")
        db.close()
        for thread in threads:
            thread.join()
        assert errors == []


def test_the_last_reference_closes(path):
    db = braiddb.open(path, create=True, options=SMALL)
    iterator = db.items()
    del db
    gc.collect()
    with pytest.raises(braiddb.BusyError):
        braiddb.open(path)
    del iterator
    gc.collect()
    braiddb.open(path).close()


def run(code, path):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code), path], capture_output=True, text=True, timeout=240)


def test_an_interpreter_may_end_with_an_open_database(path):
    result = run("""
        import braiddb, sys
        db = braiddb.open(sys.argv[1], create=True, comparator=("own", lambda a, b: (a > b) - (a < b)),
                          options=braiddb.Options(max_region_size=1 << 28, memtable_max_entries=1024))
        iterator, snapshot = db.items(), db.snapshot()
        for i in range(5000):
            db[b"%d" % i] = b"v"
        next(iterator, None)
        view = memoryview(db.get_view(b"1"))
        """, path)
    assert result.returncode == 0, result.stderr
    with braiddb.open(path, comparator=("own", lambda a, b: (a > b) - (a < b))) as db:
        assert len(list(db)) == 5000


# Daemon threads and destructors run while the interpreter ends.
@pytest.mark.parametrize("work", [
    "braiddb.open(sys.argv[1] + 'x', create=True).close()",
    "braiddb.check(sys.argv[1] + 'y')",
    "bytes(view[50:60])",
    "db.put(b'k', b'v')",
])
def test_daemon_threads_end_with_the_interpreter(path, work):
    for _ in range(3):
        result = run(f"""
            import braiddb, sys, threading, time
            braiddb.open(sys.argv[1] + "y", create=True).close()
            db = braiddb.open(sys.argv[1], create=True, options=braiddb.Options(max_region_size=1 << 28))
            db[b"value"] = b"z" * 100000
            view = memoryview(db.get_view(b"value"))

            class AtEnd:
                def __del__(self):
                    assert bytes(view[:3]) == b"zzz"

            def loop():
                try:
                    while True:
                        {work}
                except braiddb.ClosedError:
                    pass
                except braiddb.BusyError:
                    loop()
            at_end = AtEnd()
            threading.Thread(target=loop, daemon=True).start()
            time.sleep(0.1)
            """, path)
        assert result.returncode == 0 and "Traceback" not in result.stderr, result.stderr
    with braiddb.open(path) as db:
        assert db[b"value"] == b"z" * 100000


def test_a_fork_leaves_the_database_to_its_parent(path):
    result = run("""
        import braiddb, os, sys
        db = braiddb.open(sys.argv[1], create=True, options=braiddb.Options(max_region_size=1 << 28))
        db[b"k"] = b"v"
        iterator, snapshot = db.items(), db.snapshot()
        child = os.fork()
        if child == 0:
            for call in (lambda: db[b"k"], lambda: next(iterator), lambda: db.put(b"k", b"")):
                try:
                    call()
                except braiddb.ClosedError as error:
                    assert "fork" in str(error)
                else:
                    os._exit(3)
            del iterator, snapshot
            db.close()
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        db[b"l"] = b"w"
        assert list(db) == [b"k", b"l"]
        db.close()
        """, path)
    assert result.returncode == 0, result.stderr


def test_children_end_that_were_forked_beside_opens_and_closes(path):
    result = run("""
        import braiddb, os, sys, threading, time
        stop = threading.Event()
        def loop():
            while not stop.is_set():
                try:
                    db = braiddb.open(sys.argv[1], create=True, options=braiddb.Options(max_region_size=1 << 28))
                except braiddb.BusyError:
                    continue
                view = db.items()
                db.close()
        thread = threading.Thread(target=loop, daemon=True)
        thread.start()
        for _ in range(40):
            child = os.fork()
            if child == 0:
                sys.exit(0)
            end = time.time() + 20
            while os.waitpid(child, os.WNOHANG) == (0, 0):
                assert time.time() < end, "a child hangs"
                time.sleep(0.001)
        stop.set()
        thread.join()
        """, path)
    assert result.returncode == 0, result.stderr


def test_options(path):
    options = braiddb.Options(l1="nv_tree", memtable_size=1 << 20, bound_space=True, max_region_size=1 << 28)
    assert pickle.loads(pickle.dumps(options)) == options
    with braiddb.open(path, create=True, options=options) as db:
        db[b"k"] = b"v"
    for wrong in (dict(no_such_option=1), dict(memtable_size="many"), dict(memtable_size="1\nl1=nv_tree")):
        with pytest.raises(braiddb.InvalidArgumentError):
            braiddb.open(path, options=braiddb.Options(**wrong))
    with pytest.raises(braiddb.InvalidArgumentError, match="give `create` to open"):
        braiddb.open(path, options=braiddb.Options(create_if_missing=True))
    with pytest.raises(braiddb.InvalidArgumentError):
        braiddb.open(path, read_only=True, ttl=1)
    with pytest.raises(braiddb.InvalidArgumentError):
        braiddb.open(path, transactions="yes")


def test_errors_are_named_after_status_codes(path):
    with pytest.raises(braiddb.NotFoundError) as error:
        braiddb.open(path)
    assert isinstance(error.value, KeyError) and isinstance(error.value, braiddb.Error)
    with braiddb.open(path, create=True, options=SMALL):
        with pytest.raises(braiddb.BusyError):
            braiddb.open(path)
    with pytest.raises(braiddb.InvalidArgumentError):
        braiddb.open(path, create=True, error_if_exists=True)


def test_read_only_and_secondary(path):
    with braiddb.open(path, create=True, options=SMALL) as db:
        db[b"k"] = b"v"
        with braiddb.open(path, secondary=path + ".secondary") as secondary:
            assert secondary[b"k"] == b"v"
            db[b"l"] = b"w"
            secondary.catch_up()
            assert list(secondary) == [b"k", b"l"]
    with braiddb.open(path, read_only=True) as reader:
        assert reader[b"k"] == b"v"
        with pytest.raises(braiddb.NotSupportedError):
            reader[b"k"] = b""


def test_wait_for_update(path):
    with braiddb.open(path, create=True, options=SMALL) as db:
        db[b"n"] = b"0"
        with braiddb.open(path, read_only=True) as reader:
            for follower in (db, reader):
                seen = follower.wait_for_update()
                assert seen >= 1
                assert follower.wait_for_update(seen, timeout=0) is None
                assert follower.wait_for_update(seen, timeout=0.15) is None

            def write():
                for i in range(1, 51):
                    db[b"n"] = b"%d" % i
                    time.sleep(0.001)

            thread = threading.Thread(target=write)
            thread.start()
            seen = 0
            while reader[b"n"] != b"50":
                seen = reader.wait_for_update(seen, timeout=60)
                assert seen is not None
            thread.join()
            with pytest.raises(braiddb.InvalidArgumentError):
                reader.wait_for_update(0, timeout=-1)
        # A signal ends it.
        signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError()))
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            with pytest.raises(TimeoutError):
                db.wait_for_update(1 << 40)
        finally:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
    with pytest.raises(braiddb.Error):
        db.wait_for_update()


def test_refresh(path):
    with braiddb.open(path, create=True, options=SMALL) as db:
        db[b"k"] = b"1"
        db.refresh()
        reader = braiddb.open(path, read_only=True)
        following = braiddb.open(path, read_only=True, options=braiddb.Options(refresh_live_readers=True))
        assert reader[b"k"] == following[b"k"] == b"1"
    assert reader[b"k"] == b"1"
    with pytest.raises(braiddb.Error):
        reader.refresh()
    with braiddb.open(path) as db:
        db[b"k"] = b"2"
        with pytest.raises(braiddb.ExpiredError):
            reader[b"k"]
        assert following[b"k"] == b"2"
        reader.refresh()
        assert reader[b"k"] == b"2" and list(reader) == [b"k"]
        reader.close()
        following.close()


def test_backup_checkpoint_check_destroy(path):
    with braiddb.open(path, create=True, options=SMALL) as db:
        db[b"k"] = b"v"
        assert db.backup(path + ".backups") == 1
        db.checkpoint(path + ".copy")
        assert "writes" in db.statistics() and db.property("num-l0-tables") is not None and db.property("nonsense") is None
        assert db.latest_sequence > 0
    assert [backup["id"] for backup in braiddb.list_backups(path + ".backups")] == [1]
    braiddb.restore(path + ".backups", path + ".restored")
    for copy in (path, path + ".copy", path + ".restored"):
        assert braiddb.check(copy) == []
        with braiddb.open(copy) as db:
            assert db[b"k"] == b"v"
        braiddb.destroy(copy)
    with pytest.raises(braiddb.Error):
        braiddb.open(path)


def test_prepared_transactions_survive(path):
    with braiddb.open(path, create=True, transactions=True, options=SMALL) as db:
        for name in ("one", "two", "three"):
            transaction = db.transaction()
            transaction.set_name(name)
            transaction.put(name.encode(), b"v")
            transaction.prepare()
            if name == "one":
                transaction.commit()
        assert list(db) == [b"one"]
    with braiddb.open(path, transactions=True) as db:
        found = {transaction.name: transaction for transaction in db.prepared_transactions()}
        assert sorted(found) == ["three", "two"]
        found["two"].commit()
        found["three"].rollback()
        assert list(db) == [b"one", b"two"]
        assert db.prepared_transactions() == []
        db[b"three"] = b"w"
    with braiddb.open(path) as db, pytest.raises(braiddb.NotSupportedError):
        db.prepared_transactions()


REVERSE = ("reverse", lambda a, b: (a < b) - (a > b))


def test_a_signal_in_a_comparator_comes_after_the_call(path):
    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    stops = 0
    keys = [b"%08d" % (i * 7919 % 1000003) for i in range(20000)]
    try:
        with braiddb.open(path, create=True, comparator=REVERSE, options=SMALL) as db:
            signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
            left = iter(keys)
            while stops < 20:
                try:
                    for key in left:
                        db[key] = b"v"
                    break
                except Stop:
                    stops += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            for key in left:
                db[key] = b"v"
            db.compact()
            # Of a put that a signal met before its call nothing is there.
            found = list(db)
            assert found == sorted(found, reverse=True) and len(found) >= len(keys) - stops
            assert all(key in db for key in found)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert stops > 0


def test_an_interrupt_in_a_merge_operator_comes_after_the_call(path):
    calls = []

    def merge(key, existing, operands):
        calls.append(key)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return b"".join(operands)

    with braiddb.open(path, create=True, merge_operator=("join", merge), options=SMALL) as db:
        db.merge(b"k", b"a")
        value = None
        with pytest.raises(KeyboardInterrupt):
            value = db.get(b"k")
            for _ in range(1000):
                pass
        assert value in (None, b"a") and db[b"k"] == b"a"


# The exception comes at the statement, also at those that Python runs by type slots.
def test_deferred_exceptions_come_with_their_statement(path):
    left = [0]

    def compare(a, b):
        left[0] -= 1
        if left[0] == 0:
            signal.raise_signal(signal.SIGALRM)
        return (a < b) - (a > b)

    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    try:
        with braiddb.open(path, create=True, comparator=("reverse", compare), options=SMALL) as db:
            db.update((b"%d" % i, b"v") for i in range(100))

            def delete():
                del db[b"7"]

            def assign():
                db[b"7"] = b"w"

            for call in (assign, lambda: db[b"8"], lambda: b"8" in db, lambda: next(db.keys(start=b"5")), delete,
                         lambda: db.put(b"7", b"v"), lambda: db.get(b"7")):
                left[0] = 4  # behind those that try the keys
                caught = False
                try:
                    call()
                except Stop:
                    caught = True
                left[0] = 0
                assert caught, call
    finally:
        signal.signal(signal.SIGALRM, before)


def test_of_several_deferred_exceptions_an_interrupt_wins(path):
    raises = []

    def merge(key, existing, operands):
        if raises:
            raise raises.pop(0)
        return b"".join(operands)

    with braiddb.open(path, create=True, merge_operator=("join", merge), options=SMALL) as db:
        db.merge(b"k", b"a")
        raises += [SystemExit(3), KeyboardInterrupt()]
        with pytest.raises((SystemExit, KeyboardInterrupt)):
            db.get(b"k")
        assert db[b"k"] == b"a"


def test_closes_beside_a_comparator_that_tries_a_key(path):
    for own_thread in (True, False):
        inside, go_on = threading.Event(), threading.Event()
        closers = []

        def compare(a, b):
            if a == b == b"close":
                if own_thread:
                    with pytest.raises(braiddb.BusyError):
                        db.close()
                else:
                    closers.append(threading.Thread(target=db.close))
                    closers[0].start()
                    inside.wait(0.2)
            return (a > b) - (a < b)

        db = braiddb.open(path, create=True, comparator=("own", compare), options=SMALL)
        if "f" not in db.families:
            db.create_family("f", comparator=("own", compare))
        else:
            db.close()
            db = braiddb.open(path, comparator=("own", compare), family_comparators={"f": ("own", compare)})
        batch = db.batch()
        if own_thread:
            batch.put(b"close", b"v", "f")
            batch.write()
            db.close()
        else:
            with pytest.raises(braiddb.ClosedError):
                batch.put(b"close", b"v", "f")
            closers[0].join()
        path += "x"


def test_clear_beside_writers(path):
    for kind in (False, True, "optimistic"):
        with braiddb.open(path + str(kind), create=True, transactions=kind, options=SMALL) as db:
            stop = threading.Event()

            def write():
                generator = random.Random(5)
                while not stop.is_set():
                    key = b"%d" % generator.randrange(3)
                    db.put(key, b"v")
                    db.delete(key)

            threads = [threading.Thread(target=write) for _ in range(3)]
            for thread in threads:
                thread.start()
            for _ in range(200):
                try:
                    db.clear()
                except (braiddb.BusyError, braiddb.TimedOutError):
                    assert kind
            stop.set()
            for thread in threads:
                thread.join()
            db.update((b"%d" % i, b"v") for i in range(10000))
            db.clear()
            assert len(db) == 0


def test_what_a_comparator_raises_for_a_key_is_raised(path):
    def compare(a, b):
        return int(a) - int(b) if a and b else len(a) - len(b)

    with braiddb.open(path, create=True, comparator=("numbers", lambda a, b: compare(a.strip(b"a"), b.strip(b"a"))),
                      options=SMALL, transactions=True) as db:
        db.update((b"%d" % i, b"v") for i in range(100))
        transaction = db.transaction()
        for call in (lambda: db.put(b"x", b""), lambda: db.__setitem__(b"x", b""), lambda: db.get(b"x"), lambda: db.delete(b"x"),
                     lambda: db.multi_get([b"1", b"x"]), lambda: list(db.keys(start=b"x")), lambda: list(db.keys(stop=b"x")),
                     lambda: db.delete_range(b"1", b"x"), lambda: db.batch().put(b"x", b""), lambda: transaction.put(b"x", b""),
                     lambda: transaction.get(b"x"), lambda: transaction.get_for_update(b"x"), lambda: db.snapshot().get(b"x"),
                     lambda: db.get_view(b"x"), lambda: db.compact(b"x"), lambda: b"x" in db):
            with pytest.raises(ValueError, match="invalid literal"):
                call()
        transaction.rollback()
        assert list(db) == [b"%d" % i for i in range(100)]


def test_comparators_that_are_none(path):
    for wrong in (5, "none", ("n", 5), ("n", lambda a, b: 1), ("n", lambda a, b: 0 if a == b else 1)):
        with pytest.raises(braiddb.InvalidArgumentError):
            braiddb.open(path, create=True, comparator=wrong)
    with pytest.raises(TypeError):
        braiddb.open(path, create=True, comparator=("n", lambda a, b: None))
    with pytest.raises(braiddb.InvalidArgumentError):
        braiddb.open(path, create=True, merge_operator=("n", None))
    result = run("""
        import braiddb, sys
        calls = []
        def compare(a, b):
            calls.append(a)
            if len(calls) > 5000 and a != b:
                raise MemoryError("for ever")
            return (a > b) - (a < b)
        db = braiddb.open(sys.argv[1], create=True, comparator=("n", compare), options=braiddb.Options(max_region_size=1 << 28))
        for i in range(5000):
            db[b"%d" % (i * 7919 % 10007)] = b"v"
        """, path)
    assert result.returncode == -signal.SIGABRT and "for ever" in result.stderr and "The process ends" in result.stderr
    with braiddb.open(path, comparator=("n", lambda a, b: (a > b) - (a < b))) as db:
        found = list(db)
        assert found == sorted(found) and len(found) > 100


def test_a_released_snapshot_waits_for_its_reads(db):
    db.update((b"%d" % i, b"v" * 100) for i in range(1000))
    stop = threading.Event()
    shared = [db.snapshot()]

    def read():
        while not stop.is_set():
            try:
                snapshot = shared[0]
                assert snapshot.get(b"7") == b"v" * 100 and len(list(snapshot.keys(limit=5))) == 5
                assert snapshot.multi_get([b"1", b"x"]) == [b"v" * 100, None] and bytes(snapshot.get_view(b"2")) == b"v" * 100
            except braiddb.ClosedError:
                pass

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        old, shared[0] = shared[0], db.snapshot()
        old.release()
    stop.set()
    for thread in threads:
        thread.join()


def test_new_families_are_as_open_takes_them(path):
    with braiddb.open(path, create=True, comparator="reverse-bytewise", merge_operator="uint64add", options=SMALL) as db:
        db.create_family("f").update({b"a": b"1", b"b": b"2"})
        db.create_family("g", comparator="reverse-bytewise")
        with pytest.raises(braiddb.Error):
            db.family("f").merge(b"a", b"\0" * 8)
            db.family("f")[b"a"]
    with braiddb.open(path, comparator="reverse-bytewise", family_comparators={"g": "reverse-bytewise"}) as db:
        assert list(db.family("f")) == [b"a", b"b"]


def test_objects_that_were_not_made_by_open():
    for call in (lambda: braiddb.Database.__new__(braiddb.Database)[b"k"], lambda: next(braiddb.Range.__new__(braiddb.Range)),
                 lambda: b"k" in braiddb.Database.__new__(braiddb.Database)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError):
        memoryview(braiddb.PinnedValue.__new__(braiddb.PinnedValue))


def in_threads(work, count=4):
    """Runs work() in several threads; returns what they raised."""
    raised = []

    def call():
        try:
            work()
        except RuntimeError as error:
            raised.append(str(error))

    threads = [threading.Thread(target=call) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_shared_iterators_raise(path):
    with braiddb.open(path, create=True) as db:
        with db.batch() as batch:
            for i in range(20000):
                batch.put(b"%06d" % i, b"v")
        iterator, found = db.items(), []

        def work():
            for item in iterator:
                found.append(item)

        raised = in_threads(work)
        assert all("another call of the iterator is under way" in text for text in raised)
        assert len(found) == len(set(found)) <= 20000


def test_shared_transactions_raise(path):
    with braiddb.open(path, create=True, transactions=True) as db:
        transaction = db.transaction()

        def work():
            for _ in range(2000):
                transaction.put(os.urandom(8), b"v" * 20)
                transaction.get(b"x")
            list(transaction.items(limit=50))

        raised = in_threads(work)
        assert all("another call of the transaction is under way" in text for text in raised)
        transaction.commit()


def test_calls_inside_a_comparator(path):
    raised = []
    iterator = None
    db = None

    def compare(a, b):
        for call in (lambda: next(iterator), lambda: db.close()) if iterator is not None else ():
            try:
                call()
            except (RuntimeError, braiddb.BusyError) as error:
                raised.append(type(error).__name__)
        return (a > b) - (a < b)

    db = braiddb.open(path, create=True, comparator=("mine", compare))
    for i in range(50):
        db[b"%d" % i] = b"v"
    found = db.keys(start=b"2")
    iterator = found
    assert next(found) == b"2"
    iterator = None
    assert set(raised) == {"RuntimeError", "BusyError"}
    db.close()
    assert db.closed


def test_shared_batches_raise(db):
    batch = db.batch()
    raised = in_threads(lambda: [(batch.put(b"k%d" % i, b"v" * 1000), i % 50 or batch.write()) for i in range(3000)])
    assert all("the batch" in each for each in raised)


def test_batches_after_close(db):
    db.create_family("f")
    batches = db.batch(), db.family("f").batch()
    db.close()
    for batch in batches:
        for call in (lambda: batch.put(b"k", b"v"), lambda: batch.delete(b"k"), lambda: batch.put(b"k", b"v", "f"), batch.write):
            with pytest.raises(braiddb.ClosedError):
                call()
    with pytest.raises(braiddb.ClosedError):
        db.create_family("g")


def test_region_paths_among_the_options(path, tmp_path):
    places = [tmp_path / "one", str(tmp_path / "two: #2\\")]
    for region_paths in (places, tuple(places)):
        with braiddb.open(path, create=True, options=braiddb.Options(region_paths=region_paths, max_region_size=1 << 28)) as db:
            db[b"a"] = b"1"
        for place in places:
            assert os.path.exists(os.path.join(place, "PARTS"))
        assert not os.path.exists(os.path.join(path, "region-0"))
        braiddb.destroy(path)
    # An argument of open() counts more.
    with braiddb.open(path, create=True, region_paths=places[:1], options=braiddb.Options(region_paths=places, max_region_size=1 << 28)):
        assert os.path.exists(os.path.join(places[0], "PARTS")) and not os.path.exists(os.path.join(places[1], "PARTS"))
    braiddb.destroy(path)


def test_paths_and_timeouts(path, tmp_path):
    with braiddb.open(os.fsencode(path) + b"\xff", create=True, options=SMALL) as other:
        other[b"k"] = b"v"
    assert braiddb.check(os.fsdecode(os.fsencode(path) + b"\xff")) == []
    with braiddb.open(os.fsencode(path) + b"\xff") as other:
        assert os.fsencode(other.path).endswith(b"\xff")
    for call in (braiddb.open, braiddb.check):
        with pytest.raises(braiddb.Error, match="xfe"):
            call(os.fsencode(path) + b"\xfe")
    for call in (lambda: braiddb.open(path + "\0x", create=True), lambda: braiddb.destroy(path + "\0x"),
                 lambda: braiddb.open(path, create=True, region_paths=[path + "r\0x"])):
        with pytest.raises(ValueError):
            call()
    for call in (lambda: braiddb.list_backups(tmp_path / "none"), lambda: braiddb.restore(tmp_path / "none", path)):
        with pytest.raises(braiddb.NotFoundError):
            call()
    assert not (tmp_path / "none").exists()
    with braiddb.open(path, create=True, transactions=True) as db:
        db[b"k"] = b"v"
        db.checkpoint(tmp_path / "copy")
        assert db.backup(tmp_path / "backups") == 1
        with pytest.raises(ValueError):
            db.checkpoint(str(tmp_path / "a\0b"))
        for timeout in (float("nan"), float("inf"), 1e300):
            with pytest.raises(braiddb.InvalidArgumentError):
                db.transaction(lock_timeout=timeout)

"""examples/resp_server speaks Redis's protocol: replies, pipelines, pieces, protocol errors, transactions, kills, clients at once.

usage: resp_server_test.py PROGRAM
"""

import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAM = ""


class Server:
    """The program on a directory of its own."""

    def __init__(self, directory, *arguments):
        self.socket = os.path.join(directory, "socket")
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        database = os.path.join(directory, "db")
        self.process = subprocess.Popen([PROGRAM, "--unixsocket", self.socket, "--dir", database, *arguments])
        for _ in range(6000):
            if self.process.poll() is not None:
                raise RuntimeError("the server has ended")
            try:
                Client(self).close()
                return
            except OSError:
                time.sleep(0.01)
        raise RuntimeError("the server does not answer")

    def end(self, signal_number=signal.SIGTERM):
        self.process.send_signal(signal_number)
        return self.process.wait(120)


class Error(str):
    """An error reply."""


class Client:
    """A connection. Replies: bytes, int, None, list, str for a simple string, or Error."""

    def __init__(self, server):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(120)
        self.socket.connect(server.socket)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @staticmethod
    def encode(*words):
        words = [word.encode() if isinstance(word, str) else word for word in words]
        return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError(line)
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return Error(rest.decode())
        if kind == b":":
            return int(rest)
        size = int(rest)
        if kind == b"*":
            return [self.reply() for _ in range(size)]
        assert kind == b"$", line
        if size < 0:
            return None
        value = self.file.read(size + 2)
        assert value.endswith(b"\r\n")
        return value[:-2]

    def call(self, *words):
        self.socket.sendall(self.encode(*words))
        return self.reply()


class RespServerTest(unittest.TestCase):
    def setUp(self):
        shm = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.directory = tempfile.TemporaryDirectory(dir=shm)
        self.server = Server(self.directory.name)
        self.client = Client(self.server)

    def tearDown(self):
        self.client.close()
        if self.server.process.poll() is None:
            self.assertEqual(self.server.end(), 0)
        self.directory.cleanup()

    def restart(self, signal_number):
        self.client.close()
        code = self.server.end(signal_number)
        self.assertEqual(code, -signal.SIGKILL if signal_number == signal.SIGKILL else 0)
        self.server = Server(self.directory.name)
        self.client = Client(self.server)

    def test_commands(self):
        call = self.client.call
        self.assertEqual(call("ping"), "PONG")
        self.assertEqual(call("PING", "x"), b"x")
        self.assertIsNone(call("GET", "a"))
        self.assertEqual(call("SET", "a", "1"), "OK")
        self.assertEqual(call("MSET", "b", "", b"\0\r\n", b"\xff\r\n$5"), "OK")
        self.assertEqual(call("GET", "a"), b"1")
        self.assertEqual(call("MGET", "a", "none", "b", b"\0\r\n"), [b"1", None, b"", b"\xff\r\n$5"])
        self.assertEqual(call("EXISTS", "a", "a", "none"), 2)
        self.assertEqual(call("DEL", "a", "none"), 1)
        self.assertIsNone(call("GET", "a"))
        self.assertIsInstance(call("DBSIZE"), int)
        self.assertIn(b"resp_server", call("INFO"))
        self.assertEqual(call("CONFIG", "SET", "appendfsync", "always"), "OK")
        self.assertEqual(call("CONFIG", "GET", "appendfsync"), [b"appendfsync", b"always"])
        self.assertEqual(call("CONFIG", "GET", "save"), [b"save", b""])
        self.assertEqual(call("CONFIG", "GET", "none"), [])
        self.assertIsInstance(call("CONFIG", "SET", "appendfsync", "odd"), Error)
        self.assertEqual(call("CONFIG", "GET", "appendfsync"), [b"appendfsync", b"always"])
        self.assertEqual(call("SET", "twice", "1"), "OK")
        self.assertEqual(call("DEL", "twice", "twice"), 1)
        self.assertEqual(call("SELECT", "0"), "OK")
        self.assertEqual(call("BGREWRITEAOF"), "OK")
        for words in [("NONE",), ("GET",), ("SET", "a", "b", "NX"), ("MSET", "a"), ("SELECT", "1"), ("EXEC",), ("DISCARD",)]:
            self.assertIsInstance(call(*words), Error, words)
        self.assertEqual(call("PING"), "PONG")

    def test_pipelines_and_pieces(self):
        count = 20000
        everything = b"".join(Client.encode("SET", "key%d" % i, "value%d" % i) for i in range(count))
        everything += b"".join(Client.encode("GET", "key%d" % i) for i in range(count))
        sender = threading.Thread(target=self.client.socket.sendall, args=(everything,))
        sender.start()
        self.assertEqual([self.client.reply() for _ in range(count)], ["OK"] * count)
        self.assertEqual([self.client.reply() for _ in range(count)], [b"value%d" % i for i in range(count)])
        sender.join()
        for byte in Client.encode("SET", "in", "pieces") + b"PING\r\n\r\nGET in\r\n":
            self.client.socket.sendall(bytes([byte]))
        self.assertEqual([self.client.reply() for _ in range(3)], ["OK", "PONG", b"pieces"])
        large = os.urandom(3_000_000)
        self.assertEqual(self.client.call("SET", "large", large), "OK")
        self.assertEqual(self.client.call("GET", "large"), large)

    def test_protocol_errors_end_the_connection(self):
        for text in [b"*x\r\n", b"*1\r\n+x\r\n", b"*1\r\n$-5\r\n", b"*1\r\n$600000000\r\n", b"*2000000\r\n", b"x" * 70000]:
            client = Client(self.server)
            try:
                client.socket.sendall(text)
                self.assertIn("Protocol error", client.reply())
                self.assertEqual(client.file.read(), b"")
            except ConnectionError:
                pass  # bytes were left unread
            client.close()
        client = Client(self.server)
        client.socket.sendall(b"*2\r\n$3\r\nGET\r\n$100\r\nonly a part")
        client.close()
        self.assertEqual(self.client.call("PING"), "PONG")

    def test_transactions(self):
        call = self.client.call
        self.assertEqual(call("SET", "b", "before"), "OK")
        self.assertEqual(call("MULTI"), "OK")
        self.assertIn("nested", call("MULTI"))
        for words in [("SET", "a", "1"), ("MSET", "b", "2", "c", "3"), ("DEL", "none", "b")]:
            self.assertEqual(call(*words), "QUEUED")
        with Client(self.server) as other:
            self.assertIsNone(other.call("GET", "c"))
        self.assertEqual(call("EXEC"), ["OK", "OK", 1])
        self.assertEqual(call("MGET", "a", "b", "c"), [b"1", None, b"3"])
        self.assertEqual(call("MULTI"), "OK")
        self.assertEqual(call("SET", "d", "4"), "QUEUED")
        self.assertIsInstance(call("GET", "d"), Error)
        self.assertTrue(call("EXEC").startswith("EXECABORT"))
        self.assertEqual(call("MULTI"), "OK")
        self.assertEqual(call("SET", "d", "4"), "QUEUED")
        self.assertEqual(call("DISCARD"), "OK")
        self.assertIsNone(call("GET", "d"))

    def test_acknowledged_writes_survive(self):
        for round_number, how in enumerate([signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGKILL]):
            for i in range(500):
                self.assertEqual(self.client.call("SET", "%d/%d" % (round_number, i), str(i)), "OK")
            self.restart(how)
            for i in range(500):
                self.assertEqual(self.client.call("GET", "%d/%d" % (round_number, i)), str(i).encode())
        self.client.socket.sendall(Client.encode("SHUTDOWN"))
        self.assertEqual(self.server.process.wait(120), 0)

    def test_it_recovers_from_too_many_clients(self):
        self.client.close()
        self.assertEqual(self.server.end(), 0)
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, before[1]))
        try:
            self.server = Server(self.directory.name)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        clients = []
        for _ in range(100):
            clients.append(socket.socket(socket.AF_UNIX))
            clients[-1].connect(self.server.socket)
        time.sleep(0.2)
        for client in clients:
            client.close()
        self.client = Client(self.server)
        self.assertEqual(self.client.call("PING"), "PONG")
        clients = [socket.socket(socket.AF_UNIX) for _ in range(100)]
        for client in clients:
            client.connect(self.server.socket)
        self.client.close()
        self.assertEqual(self.server.end(), 0)  # and while they are there
        for client in clients:
            client.close()
        self.server = Server(self.directory.name)
        self.client = Client(self.server)

    def test_clients_at_once(self):
        failures = []

        def work(number):
            try:
                for connection in range(6):
                    with Client(self.server) as client:
                        for i in range(50):
                            key = "%d/%d/%d" % (number, connection, i)
                            if client.call("SET", key, key) != "OK" or client.call("GET", key) != key.encode():
                                failures.append(key)
            except Exception as error:  # pylint: disable=broad-except
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()

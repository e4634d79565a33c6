"""TLS, a Unix socket and Sentinel, on real servers."""

import pathlib
import shutil
import subprocess
import unittest

import redis
from fake_merger import FakeMerger
from support import MASTER, REDIS_SERVER, ModuleCase, RedisServer, free_port, wait_for


def make_certificates(folder):
    """An authority, and a server's certificate for `redis.example` alone."""

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test ca")
    openssl("req", *new_key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=redis.example")
    pathlib.Path(folder, "san.cnf").write_text("subjectAltName=DNS:redis.example\n")
    openssl(
        *("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"),
        *("-out", "server.pem", "-days", "2", "-extfile", "san.cnf"),
    )


class Transport(ModuleCase):
    def serve(self, server):
        self.addCleanup(server.stop)
        server.start()
        merger = FakeMerger(server.connection(), MASTER, lambda request, entry: {"role": "web"})
        self.addCleanup(merger.__exit__)
        merger.__enter__()
        return server

    def file(self, name):
        return str(pathlib.Path(self.folder, name))

    @unittest.skipUnless(shutil.which("openssl"), "no openssl")
    def test_tls_checks_the_certificate_and_its_name(self):
        make_certificates(self.folder)
        tls_port = free_port()
        files = ("server.pem", "server.key", "ca.pem")
        names = ("--tls-cert-file", "--tls-key-file", "--tls-ca-cert-file")
        arguments = [part for pair in zip(names, map(self.file, files), strict=True) for part in pair]
        self.serve(RedisServer(self.folder, "--tls-port", str(tls_port), "--tls-auth-clients", "optional", *arguments))
        named = {"ca": self.file("ca.pem"), "server_name": "redis.example"}
        self.assertEqual(self.compile(port=tls_port, tls=named)["role"], "web")
        with_key = {**named, "cert": self.file("server.pem"), "key": self.file("server.key")}
        self.assertEqual(self.compile(port=tls_port, tls=with_key)["role"], "web")
        for wrong in ({"ca": named["ca"]}, {**named, "server_name": "other.example"}, {"server_name": "redis.example"}):
            with self.subTest(wrong):
                self.refuse("COLONNADE_REDIS_UNAVAILABLE", port=tls_port, tls=wrong)
        self.refuse("COLONNADE_REDIS_UNAVAILABLE", port=tls_port)

    def test_a_unix_socket(self):
        path = self.file("redis.sock")
        self.serve(RedisServer(self.folder, "--unixsocket", path))
        self.assertEqual(self.compile(port=None, unix_socket=path)["role"], "web")
        self.refuse("COLONNADE_REDIS_UNAVAILABLE", port=None, unix_socket=self.file("none.sock"))

    def test_sentinel_names_the_master_of_the_moment(self):
        server = self.serve(RedisServer(self.folder))
        sentinel = free_port()
        config = pathlib.Path(self.folder, "sentinel.conf")
        config.write_text(
            f"port {sentinel}\nbind 127.0.0.1\nsentinel monitor bridge 127.0.0.1 {server.port} 1\ndir {self.folder}\n"
        )
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([REDIS_SERVER, str(config), "--sentinel"], **quiet)
        self.addCleanup(process.wait, 10)
        self.addCleanup(process.terminate)
        wait_for(lambda: _knows_master(sentinel), "the sentinel")
        dead = free_port()
        hosts = [f"127.0.0.1:{dead}", f"127.0.0.1:{sentinel}"]
        changes = {"port": None, "sentinel": {"hosts": hosts, "service": "bridge"}}
        self.assertEqual(self.compile(**changes)["role"], "web")
        self.refuse("COLONNADE_REDIS_UNAVAILABLE", port=None, sentinel={"hosts": hosts, "service": "other"})


def _knows_master(port):
    try:
        with redis.Redis(port=port) as client:
            return client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "bridge")
    except redis.exceptions.RedisError:
        return None


if __name__ == "__main__":
    unittest.main()

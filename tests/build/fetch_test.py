"""cmake/fetch.py names the cause and the remedy of a failed download, keeps finished archives, and leaves nothing incomplete."""

import hashlib
import http.server
import io
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile

SOURCE = pathlib.Path(os.environ["KVSCOPE_SOURCE"])
NAMES = ("torch", "nvidia-cuda-runtime", "nvidia-cuda-cupti")  # the archives of libtorch


def wheel(name):
    """Returns a package that pip accepts, with one file of a megabyte."""
    name = name.replace("-", "_")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(f"{name}/data", os.urandom(1 << 20))
        archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return content.getvalue()


class Index(http.server.BaseHTTPRequestHandler):
    """A package index. Sends only half of the archives in `broken`, and the archives in `slow` without end."""

    def do_GET(self):
        server = self.server
        name = self.path.strip("/").split("/")[-1]
        package = name.partition("-1.0-")[0].replace("_", "-")
        if not name.endswith(".whl"):
            content = f'<a href="/{name.replace("-", "_")}-1.0-py3-none-any.whl">file</a>'.encode()
        else:
            content = server.wheels[package]
            server.sent.append(package)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        whole = not name.endswith(".whl") or package not in server.broken | server.slow
        self.wfile.write(content if whole else content[:len(content) // 2])
        if not whole and package in server.slow:
            self.wfile.flush()
            server.reached.set()
            server.closed.wait()

    def log_message(self, *_):
        pass


class Fetch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kvscope-fetch-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cache = self.folder / "cache"
        shutil.copy(SOURCE / "cmake" / "fetch.py", self.folder)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
        self.server.daemon_threads = True
        self.server.wheels = {name: wheel(name) for name in NAMES}
        self.server.broken, self.server.slow, self.server.sent = set(), set(), []
        self.server.reached, self.server.closed = threading.Event(), threading.Event()
        self.pin({})
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.addCleanup(self.server.closed.set)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        self.environment.update(KVSCOPE_CACHE=str(self.cache), PIP_CONFIG_FILE=os.devnull, PIP_RETRIES="0",
                                PIP_INDEX_URL=f"http://127.0.0.1:{self.server.server_port}/", NO_PROXY="127.0.0.1")

    def pin(self, hashes):
        (self.folder / "dependencies.txt").write_text("".join(
            f"{name} 1.0 wheel {hashes.get(name, hashlib.sha256(content).hexdigest())}\n"
            for name, content in self.server.wheels.items()))

    def start(self):
        return subprocess.Popen([sys.executable, self.folder / "fetch.py", "libtorch"], env=self.environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def fails(self, text):
        """Expects that fetching fails with one last line, and that no incomplete folder is left."""
        process = self.start()
        _, errors = process.communicate()
        self.assertEqual(process.returncode, 1, errors)
        last = errors.splitlines()[-1]
        self.assertRegex(last, rf"^kvscope: .*{text}.*; .+")
        self.assertNotIn("Traceback", errors)
        self.check_nothing_incomplete()

    def check_nothing_incomplete(self):
        left = [str(path) for path in self.cache.rglob(".*") if not path.name.endswith(".lock")]
        self.assertEqual(left, [])

    def succeeds(self):
        process = self.start()
        output, errors = process.communicate()
        self.assertEqual(process.returncode, 0, errors)
        place = pathlib.Path(output.strip())
        for name in NAMES:
            self.assertTrue((place / name.replace("-", "_") / "data").is_file(), name)
        self.assertEqual(list((self.cache / "archives").glob("[!.]*")), [], "archives that are no longer needed")

    def test_broken_connection(self):
        self.server.broken = {"nvidia-cuda-cupti"}
        self.fails("nvidia-cuda-cupti")
        self.server.broken = set()
        self.server.sent.clear()
        self.succeeds()
        self.assertEqual(self.server.sent, ["nvidia-cuda-cupti"], "only the missing archive is downloaded again")

    def test_no_connection(self):
        self.environment["PIP_INDEX_URL"] = "http://127.0.0.1:9/"
        self.fails("cannot be reached")

    def test_wrong_hash(self):
        self.pin({"torch": "0" * 64})
        self.fails("sha256")

    def test_no_pip(self):
        (self.folder / "pip.py").write_text("raise ModuleNotFoundError('No module named pip')\n")
        self.environment["PYTHONPATH"] = str(self.folder)
        self.fails("has no pip")

    def test_unusable_cache(self):
        self.cache.write_text("a file instead of a folder")
        self.fails(str(self.cache))

    def test_empty_folders_of_ninja(self):
        """Ninja creates the folders of files that a command will create, also while another process fetches them."""
        where = subprocess.run([sys.executable, self.folder / "fetch.py", "--where", "libtorch"], env=self.environment,
                               capture_output=True, text=True, check=True)
        (pathlib.Path(where.stdout.strip()) / "torch" / "lib").mkdir(parents=True)
        self.succeeds()

    def test_full_disk(self):
        self.cache.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1536k", "tmpfs", self.cache], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("mounting a small disk needs root")
        try:
            self.fails("full|No space left")
        finally:
            subprocess.run(["umount", self.cache], check=True)

    def test_interruption(self):
        self.server.slow = {"torch"}
        process = self.start()
        self.assertTrue(self.server.reached.wait(60))
        os.killpg(process.pid, signal.SIGINT)
        process.communicate()
        self.assertEqual(process.returncode, 130)
        self.check_nothing_incomplete()
        self.server.slow = set()
        self.succeeds()


if __name__ == "__main__":
    unittest.main()

"""The Debian package and the archive of scripts/package run on a Debian 12 system that has only its base packages."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["KVSCOPE_SOURCE"])
sys.path.insert(0, str(SOURCE / "cmake"))
from fetch import cache_folder  # noqa: E402

BUILD = pathlib.Path.cwd()
DEBIAN = "bookworm"
TEXT = "The capital of France is Paris. The capital of Italy is Rome. The capital of Spain is Madrid."


def run(*command, **options):
    """Runs a command that must succeed and returns its output."""
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          stdin=subprocess.DEVNULL, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


def mirror():
    """Returns the address from which apt of this machine installs Debian 12, or an empty text."""
    if not shutil.which("apt-get"):
        return ""
    listed = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian",
                 f"Codename: {DEBIAN}", "Component: main")
    return next(iter(listed.split()), "")


def base_system():
    """Returns an archive of a Debian 12 system with only its base packages. It is made once per machine."""
    archive = cache_folder() / f"{DEBIAN}-base.tar.gz"
    if archive.exists():
        return archive
    if not mirror():
        raise unittest.SkipTest("apt of this machine has no mirror of Debian 12")
    with tempfile.TemporaryDirectory(prefix="kvscope-debian-") as folder:
        root, packed = pathlib.Path(folder) / "root", pathlib.Path(folder) / "base.tar.gz"
        try:
            run("debootstrap", "--variant=minbase", DEBIAN, root, mirror())
        except AssertionError as error:
            raise unittest.SkipTest(f"debootstrap cannot install Debian 12: {str(error)[-500:]}") from error
        run("tar", "--gzip", "--exclude=./var/cache/apt/*.bin", "-C", root, "-cf", packed, ".")
        archive.parent.mkdir(parents=True, exist_ok=True)
        unfinished = archive.with_suffix(f".{os.getpid()}")
        shutil.copyfile(packed, unfinished)
        unfinished.rename(archive)
    return archive


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("only root can change the root folder of a process")
        if not shutil.which("debootstrap"):
            raise unittest.SkipTest("debootstrap is not installed")
        if subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            raise unittest.SkipTest("this machine permits no mounts, and kvscope needs /proc")
        if "\n  run " not in run(BUILD / "bin" / "kvscope", "--help"):
            raise unittest.SkipTest("this build has no engine")
        cls.base = base_system()

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kvscope-package-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.root = self.folder / "root"
        self.root.mkdir()
        run("tar", "-xf", self.base, "-C", self.root)

    def packed(self, generator, name):
        """Makes the package of this kind, whose file name matches the pattern."""
        made = self.folder / "made"
        run("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", generator, "-B", made)
        [package] = made.glob(name)
        return package

    def inside(self, *command):
        """Runs a command in the base system, which has no display and no compiler."""
        return run("unshare", "--mount", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', self.root,
                   *command, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
                                  "DEBIAN_FRONTEND": "noninteractive"})

    def check_program(self, prefix):
        program = f"{prefix}/bin/kvscope"
        self.assertRegex(self.inside(program, "--version"), r"^kvscope \d+\.\d+\.\d+")
        [model] = (self.root / prefix.lstrip("/") / "share" / "kvscope" / "models").iterdir()
        self.assertIn("chat template: yes", self.inside(program, "inspect", f"{prefix}/share/kvscope/models/{model.name}"))
        self.inside(program, "run", "-p", TEXT, "--policy", "snapkv:window=8", "--budget", "16", "-n", 4, "-o", "/t.h5")
        said = self.inside(program, "export", "/t.h5", "--figure", "coverage", "-o", "/coverage.pdf")
        self.assertNotIn("Fontconfig", said)
        if shutil.which("pdffonts"):
            self.assertIn("Inter", run("pdffonts", self.root / "coverage.pdf"))
        for name in ("man/man1/kvscope.1", "applications/kvscope.desktop", "doc/kvscope/LICENSE"):
            self.assertGreater((self.root / prefix.lstrip("/") / "share" / name).stat().st_size, 0, name)

    def test_archive(self):
        package = self.packed("TGZ", "kvscope-*.tar.gz")
        run("tar", "-xf", package, "-C", self.root / "opt")
        prefix = "/opt/" + package.name.removesuffix(".tar.gz")
        self.check_program(prefix)
        licences = self.root / prefix.lstrip("/") / "share" / "doc" / "kvscope"
        for name in ("libcairo2", "libhdf5-103-1", "fonts-inter"):
            self.assertTrue((licences / name / "copyright").is_file(), name)

    def test_debian_package(self):
        package = self.packed("DEB", "kvscope_*.deb")
        package.rename(self.root / "kvscope.deb")
        (self.root / "etc/apt/apt.conf.d/90host").write_text(run("apt-config", "dump", "Acquire"))
        for file in ("/etc/resolv.conf", "/etc/hosts"):
            shutil.copyfile(file, self.root / file.lstrip("/"))
        try:
            self.inside("apt-get", "update")
        except AssertionError as error:
            self.skipTest(f"apt reaches no mirror: {str(error)[-500:]}")
        self.inside("apt-get", "install", "-y", "--no-install-recommends", "/kvscope.deb")
        self.check_program("/usr")


if __name__ == "__main__":
    unittest.main()

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <clocale>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "app/gui/session/workspace_file.h"
#include "common/json.h"
#include "tests/trace/sample_trace.h"

namespace fs = std::filesystem;
using namespace kvscope::gui;
using Catch::Matchers::Contains;
using kvscope::trace::sample::TemporaryFolder;

namespace {

void put(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string contents(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

/// Makes bad.kvscope with Python: `files` is the list in workspace.json, `add` writes the other entries of the archive.
fs::path archive_of(const TemporaryFolder& folder, const std::string& files, const std::string& add,
                    const std::string& afterwards = "") {
    put(folder / "make.py", R"(
import json, stat, zipfile
state = {"kvscope_workspace": 1, "session": {"traces": [{"path": "t.h5"}]}}
files = )" + files + R"(
if files is not None: state["files"] = files
archive = zipfile.ZipFile("bad.kvscope", "w")
archive.writestr("workspace.json", json.dumps(state))
)" + add + R"(
archive.close()
data = bytearray(open("bad.kvscope", "rb").read())
)" + afterwards + R"(
open("bad.kvscope", "wb").write(data)
)");
    REQUIRE(std::system(("cd '" + folder.path().string() + "' && python3 -W ignore make.py").c_str()) == 0);
    return folder / "bad.kvscope";
}

const std::string listed = R"([{"name": "t.h5", "bytes": 5}])";
const std::string small = "archive.writestr('t.h5', b'12345')\n";

/// Checks that nothing of a refused archive remains.
void check_refused(const TemporaryFolder& folder, const fs::path& file, const std::string& entry,
                   const std::string& why) {
    const fs::path out = folder / "unpacked" / "w";
    CHECK_THROWS_WITH(unpack_workspace(file, out), Contains("bad.kvscope") && Contains(entry) && Contains(why));
    CHECK((!fs::exists(folder / "unpacked") || fs::is_empty(folder / "unpacked")));
    CHECK_FALSE(fs::exists(folder / "escaped"));
}

}  // namespace

TEST_CASE("reading a workspace returns its contents and unpacks only missing files") {
    const TemporaryFolder folder;
    put(folder / "t", "trace");
    put(folder / "n", "notes");
    const fs::path file = folder / "w.kvscope", out = folder / "unpacked" / "w";
    write_workspace(file, {{"session", 1}}, {{folder / "t", "t.h5"}, {folder / "n", "t.h5.notes.json"}});
    CHECK(unpack_workspace(file, out).at("session") == 1);
    CHECK(contents(out / "t.h5") == "trace");
    put(out / "t.h5.notes.json", "other notes");
    fs::remove(out / "t.h5");
    unpack_workspace(file, out);
    CHECK(contents(out / "t.h5") == "trace");
    CHECK(contents(out / "t.h5.notes.json") == "other notes");
}

TEST_CASE("a workspace keeps the names of its files in every locale") {
    const std::string before = std::setlocale(LC_ALL, nullptr);
    const std::string name = "Prüfung 試験.h5";
    for (const char* writing : {"C", "C.UTF-8"}) {
        for (const char* reading : {"C", "C.UTF-8"}) {
            CAPTURE(writing, reading);
            const TemporaryFolder folder;
            put(folder / "t", "trace");
            const fs::path file = folder / "w.kvscope", out = folder / "unpacked" / "w";
            CHECK(std::setlocale(LC_ALL, writing) != nullptr);
            CHECK_NOTHROW(write_workspace(file, {{"session", 1}}, {{folder / "t", name}}));
            CHECK(std::setlocale(LC_ALL, reading) != nullptr);
            CHECK_NOTHROW(unpack_workspace(file, out));
            CHECK(std::string(std::setlocale(LC_ALL, nullptr)) == reading);
            std::setlocale(LC_ALL, before.c_str());
            CHECK(contents(out / name) == "trace");
        }
    }
    // As other programs write it, with and without the flag for UTF-8.
    for (const char* stored : {"Prüfung.h5", "Pr__fung.h5"}) {
        const TemporaryFolder folder;
        const fs::path file = archive_of(folder, R"([{"name": "Prüfung.h5", "bytes": 5}])",
                                         "archive.writestr('" + std::string(stored) + "', b'12345')\n",
                                         "data = data.replace(b'Pr__fung', 'Prüfung'.encode())\n");
        CHECK_NOTHROW(unpack_workspace(file, folder / "w"));
        CHECK(contents(folder / "w" / "Prüfung.h5") == "12345");
    }
}

TEST_CASE("a workspace of an earlier version, which lists only traces, is read with their annotations") {
    const TemporaryFolder folder;
    const fs::path file = archive_of(folder, "None", small + "archive.writestr('t.h5.notes.json', b'{}')\n");
    unpack_workspace(file, folder / "w");
    CHECK(contents(folder / "w" / "t.h5") == "12345");
    CHECK(contents(folder / "w" / "t.h5.notes.json") == "{}");
}

TEST_CASE("a hostile workspace leaves nothing on the disk, and the message names the entry") {
    const TemporaryFolder folder;
    const auto refused = [&](const std::string& files, const std::string& add, const std::string& entry,
                             const std::string& why, const std::string& afterwards = "") {
        CAPTURE(add, afterwards);
        check_refused(folder, archive_of(folder, files, add, afterwards), entry, why);
    };
    SECTION("with contents much larger than the file") {
        const std::string bomb = "archive.writestr('t.h5', bytes(300_000_000), compress_type=zipfile.ZIP_DEFLATED)\n";
        refused(R"([{"name": "t.h5", "bytes": 300000000}])", bomb, "300000000 bytes", "expected uncompressed files");
        refused("None", bomb, "300000000 bytes", "expected uncompressed files");
    }
    SECTION("with unlisted files") {
        refused(listed, small + "archive.writestr('more.bin', b'x')\n", "more.bin", "does not list it");
        refused("None", small + "archive.writestr('more.bin', b'x')\n", "more.bin", "does not list it");
        refused("[]", small, "t.h5", "does not list it");
    }
    SECTION("without a listed file") { refused(listed, "", "t.h5", "which is missing"); }
    SECTION("with names that leave the folder") {
        for (const char* name : {"../escaped", "/tmp/escaped", "a/../../escaped", "..", "a/b", "dir/"}) {
            const std::string list =
                R"([{"name": "t.h5", "bytes": 5}, {"name": ")" + std::string(name) + R"(", "bytes": 1}])";
            const std::string add = small + "archive.writestr('" + name + "', b'x')\n";
            refused(list, add, name, "leads out of its folder");
            refused(listed, add, name, "leads out of");
        }
    }
    SECTION("with duplicate names") {
        refused(listed, small + small, "t.h5", "twice");
        refused(listed, small + "archive.writestr('workspace.json', b'{}')\n", "workspace.json", "twice");
        refused(R"([{"name": "t.h5", "bytes": 5}, {"name": "t.h5", "bytes": 5}])", small, "t.h5", "twice");
    }
    SECTION("with a link") {
        const std::string link =
            "entry = zipfile.ZipInfo('t.h5')\nentry.create_system = 3\n"
            "entry.external_attr = (stat.S_IFLNK | 0o777) << 16\narchive.writestr(entry, '/etc')\n";
        refused(R"([{"name": "t.h5", "bytes": 4}])", link, "t.h5", "a folder or a link");
    }
    SECTION("with wrong sizes") {
        refused(R"([{"name": "t.h5", "bytes": 6}])", small, "t.h5", "lists 6 bytes, but the archive has 5");
        refused(R"([{"name": "t.h5", "bytes": -1}])", small, "workspace.json", "without a name or size");
        // The archive claims in both places that the 100,000 bytes are 5.
        const std::string deflated = "archive.writestr('t.h5', bytes(100_000), compress_type=zipfile.ZIP_DEFLATED)\n";
        const std::string lie =
            "old, new = (100_000).to_bytes(4, 'little'), (5).to_bytes(4, 'little')\n"
            "assert data.count(old) == 2\ndata = data.replace(old, new)\n";
        refused(listed, deflated, "t.h5", "file", lie);
    }
    SECTION("with damaged contents") {
        refused(listed, small, "t.h5", "cannot be read", "data = data.replace(b'12345', b'12346')\n");
    }
}

TEST_CASE("unpacked files are removed once no process has them open, but files written later stay") {
    const TemporaryFolder folder;
    put(folder / "t", "trace");
    const fs::path file = folder / "w.kvscope", all = folder / "workspaces", out = all / "w-0123456789abcdef";
    write_workspace(file, {{"session", 1}}, {{folder / "t", "t.h5"}});
    unpack_workspace(file, out);
    {
        const FolderInUse in_use(out);
        remove_unpacked_workspaces(all);
        CHECK(fs::exists(out / "t.h5"));
    }
    put(out / "t.h5.notes.json", "notes");
    fs::create_directories(all / "other-0123456789abcdef.new-4321");  // as after a crash during unpacking
    put(all / "other-0123456789abcdef.new-4321" / "half", "ha");
    fs::create_directory_symlink(folder.path(), all / "link");
    remove_unpacked_workspaces(all);
    CHECK_FALSE(fs::exists(out / "t.h5"));
    CHECK(contents(out / "t.h5.notes.json") == "notes");
    CHECK_FALSE(fs::exists(all / "other-0123456789abcdef.new-4321"));
    CHECK(fs::exists(folder / "t"));
    unpack_workspace(file, out);
    CHECK(contents(out / "t.h5") == "trace");
    fs::remove(out / "t.h5.notes.json");
    remove_unpacked_workspaces(all);
    CHECK_FALSE(fs::exists(out));
    remove_unpacked_workspaces(folder / "nowhere");
}

#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "app/gui/layout/layouts.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"
#include "trace/hdf5/hdf5.h"

namespace kvscope::gui::testing {
namespace {

namespace fs = std::filesystem;
namespace h5 = trace::h5;

/// Position of an array's bytes in its file.
struct Bytes {
    haddr_t at;
    hsize_t size;
};

/// Adds the bytes of all arrays whose path begins with `part`: the chunks of packed arrays, else the whole array.
void add_bytes(hid_t file, const std::string& group, const std::string& part, std::vector<Bytes>& all) {
    for (const std::string& name : h5::members(file, group.empty() ? "/" : group)) {
        const std::string path = group + "/" + name;
        if (h5::is_group(file, path)) {
            add_bytes(file, path, part, all);
            continue;
        }
        if (path.find(part) == std::string::npos) continue;
        const h5::Handle array = h5::open_data_set(file, path);
        const h5::Handle layout(H5Dget_create_plist(array.get()), H5Pclose);
        if (H5Pget_layout(layout.get()) == H5D_CONTIGUOUS) {
            const haddr_t at = H5Dget_offset(array.get());
            if (at != HADDR_UNDEF) all.push_back({at, H5Dget_storage_size(array.get())});
            continue;
        }
        if (H5Pget_layout(layout.get()) != H5D_CHUNKED) continue;
        const h5::Handle space(H5Dget_space(array.get()), H5Sclose);
        hsize_t n_chunks = 0;
        H5Dget_num_chunks(array.get(), space.get(), &n_chunks);
        for (hsize_t chunk = 0; chunk < n_chunks; ++chunk) {
            Bytes bytes{};
            unsigned filters = 0;
            hsize_t offset[8] = {};
            H5Dget_chunk_info(array.get(), space.get(), chunk, offset, &filters, &bytes.at, &bytes.size);
            all.push_back(bytes);
        }
    }
}

/// Overwrites the arrays' bytes in the file. Returns the number of places.
size_t damage(const fs::path& path, const std::string& part) {
    std::vector<Bytes> all;
    {
        const h5::Guard guard;
        const h5::Handle file(h5::checked(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "open for a test"),
                              H5Fclose);
        add_bytes(file.get(), "", part, all);
    }
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    for (const Bytes& bytes : all) {
        file.seekp(static_cast<std::streamoff>(bytes.at));
        file << std::string(bytes.size, '\xf3');
    }
    return all.size();
}

}  // namespace

TEST_CASE("every view draws a trace with damaged arrays, reports the damage, and stays usable") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    const std::string part = GENERATE("/", "/runs/", "/full/", "/kept_", "/scores", "/token_", "/model/");
    CAPTURE(part);
    REQUIRE(damage(sample.path, part) > 0);
    DrivenApp driven(explore(sample));
    driven.settle();
    REQUIRE(driven.session().documents().size() == 1);
    std::string shown;
    for (const ViewKind& kind : view_kinds()) {
        CAPTURE(kind.name);
        driven.app().show_view(kind);
        driven.settle();
        driven.drive([&](ImGuiTestContext& c) {
            const ImGuiWindow* window = c.GetWindowByRef(("//" + kind.name + "-1").c_str());
            IM_CHECK(window != nullptr);
            c.MouseMoveToPos(window->Rect().GetCenter());
            c.MouseClick();
            for (const ImGuiKey key : {ImGuiKey_RightBracket, ImGuiKey_Period, ImGuiKey_F}) c.KeyPress(key);
            c.Yield(2);
        });
        driven.settle();
        shown += driven.shown_text();
    }
    CHECK(shown.find("sample.h5") != std::string::npos);
    CHECK((shown.find("cannot read") != std::string::npos || shown.find("expected") != std::string::npos));
    driven.app().apply_layout("compare");
    driven.settle();
}

TEST_CASE("Prompt shows why the text of a damaged trace cannot be read") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    REQUIRE(damage(sample.path, "/token_") > 0);
    DrivenApp driven(alone(sample, "prompt"));
    driven.settle();
    const std::string shown = driven.shown_text();
    CHECK(shown.find("reading …") == std::string::npos);
    CHECK((shown.find("cannot read") != std::string::npos || shown.find("expected") != std::string::npos));
}

}  // namespace kvscope::gui::testing

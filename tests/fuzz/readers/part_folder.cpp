// trace.json of a .part folder, and the folder's names.
#include "tests/fuzz/read_trace.h"
#include "tests/fuzz/reader.h"

namespace kvscope::fuzz {

Reader part_folder_reader() {
    return {"part_folder", [](std::string_view bytes) {
                const auto folder = scratch() / "t.h5.part";
                std::filesystem::create_directories(folder);
                scratch_file("t.h5.part/trace.json", bytes);
                // Parts that are none, by names that are some.
                scratch_file("t.h5.part/prompt-0.h5", bytes);
                scratch_file("t.h5.part/run-0-99999999999999999999.h5", "");
                scratch_file("t.h5.part/results--1.h5", "");
                read_trace(folder);
            }};
}

}  // namespace kvscope::fuzz

#include "app/gui/session/workspace_file.h"
#include "common/json.h"
#include "tests/fuzz/reader.h"

namespace kvscope::fuzz {

Reader workspace_reader() {
    return {"workspace", [](std::string_view bytes) {
                const auto path = scratch_file("w.kvscope", bytes);
                const auto folder = scratch() / "unpacked" / "w";
                std::error_code error;
                std::filesystem::remove_all(folder, error);
                may_refuse([&] { gui::unpacking_folder_name(path); });
                may_refuse([&] { gui::unpack_workspace(path, folder); });
                may_refuse([&] { gui::unpack_workspace(path, folder); });
                if (std::filesystem::exists(scratch() / "outside"))
                    throw std::logic_error("a name led out of the folder");
            }};
}

}  // namespace kvscope::fuzz

// What is in a trace file, as a list: for `inspect`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kvscope::trace {

struct TreeAttribute {
    std::string name;
    std::string type;   ///< text, i64, f64, u8 …
    std::string value;  ///< as text; lists as JSON
};

struct TreeNode {
    std::string path;  ///< HDF5 path
    bool is_group = false;
    std::string type;                  ///< of a data set: f32, u64, text, table …
    std::vector<std::uint64_t> shape;  ///< of a data set
    std::uint64_t bytes = 0;           ///< unpacked; strings as they lie in the array
    std::uint64_t stored_bytes = 0;    ///< in the file
    std::string link_to;               ///< path of the first name of the same object, if this is a further one
    std::vector<TreeAttribute> attributes;
};

/// Groups before their members, in natural order (2 before 10). A `.part` folder is listed as the one
/// trace that it stands for. Throws as Reader does.
std::vector<TreeNode> tree(const std::filesystem::path& path);

}  // namespace kvscope::trace

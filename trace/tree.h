// List of the contents of a trace file, for `inspect`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kvscope::trace {

struct TreeAttribute {
    std::string name;
    std::string type;   ///< type name, e.g. text, i64, f64, u8
    std::string value;  ///< value as text; a list as JSON
};

struct TreeNode {
    std::string path;  ///< HDF5 path of the object
    bool is_group = false;
    std::string type;                  ///< element type of a data set, e.g. f32, u64, text, table
    std::vector<std::uint64_t> shape;  ///< shape of a data set
    std::uint64_t bytes = 0;           ///< size after unpacking, without the characters of strings
    std::uint64_t stored_bytes = 0;    ///< size in the file
    std::string link_to;  ///< first path of the object if `path` is another link to the object, otherwise empty
    std::vector<TreeAttribute> attributes;
};

/// Returns groups before their members, in numeric order. Lists a `.part` folder as one trace. Throws like Reader.
std::vector<TreeNode> tree(const std::filesystem::path& path);

}  // namespace kvscope::trace

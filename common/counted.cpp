#include "common/counted.h"

namespace kvscope {

std::string counted(std::int64_t n, std::string_view noun) {
    std::string text = std::to_string(n) + ' ' + std::string(noun);
    if (n == 1) return text;
    const bool ends_in_y = noun.ends_with('y') && !noun.ends_with("ay") && !noun.ends_with("ey");
    if (ends_in_y) text.pop_back();
    return text + (ends_in_y ? "ies" : "s");
}

}  // namespace kvscope

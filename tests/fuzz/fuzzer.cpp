// libFuzzer's entry: one program for each reader, which the build names.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/reader.h"

namespace kvscope::fuzz {
Reader KVSCOPE_FUZZED();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const kvscope::fuzz::Reader reader = kvscope::fuzz::KVSCOPE_FUZZED();
    reader.read({reinterpret_cast<const char*>(data), size});
    return 0;
}

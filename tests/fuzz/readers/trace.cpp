#include "tests/fuzz/read_trace.h"
#include "tests/fuzz/reader.h"
#include "trace/checks/check_trace.h"
#include "trace/reader.h"
#include "trace/tree.h"

namespace kvscope::fuzz {

Reader trace_reader() {
    return {"trace", [](std::string_view bytes) { read_trace(scratch_file("trace.h5", bytes)); }};
}

}  // namespace kvscope::fuzz
